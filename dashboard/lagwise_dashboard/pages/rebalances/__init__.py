"""The rebalances page."""

"""What the rebalances of a group amount to, and why they happen."""

"""What happened between two samples of the same cluster: rebalances, rewinds, skips, changes of topics and of
leaders."""

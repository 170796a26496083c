"""The page Plan a new workload."""

"""What a workload needs: threads, nodes and partitions, and what would change it."""

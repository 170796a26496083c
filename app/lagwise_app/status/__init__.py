"""`lagwise status`: which groups are in trouble, worst first, once or continuously."""

"""What today's consumers can do, what will be asked of them, and the verdict that follows."""

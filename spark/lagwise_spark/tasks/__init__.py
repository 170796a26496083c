"""What runs in Spark's tasks: rows of the lake as columns, and the rules on them."""

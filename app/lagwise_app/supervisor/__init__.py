"""`lagwise up`: the processes of the product, started, watched and ended together."""

"""A RocketMQ cluster as a source; ``remoting`` is a small client of RocketMQ's protocol."""

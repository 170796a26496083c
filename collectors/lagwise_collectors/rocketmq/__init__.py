"""RocketMQ: a small remoting client of our own, and a cluster as a source."""

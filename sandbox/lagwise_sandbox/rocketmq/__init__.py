"""A real RocketMQ of one's own: name server, brokers, and Java consumers that do what a scenario says."""

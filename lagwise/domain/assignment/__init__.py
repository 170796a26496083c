"""Who reads what, how evenly, what Kafka's assignors would give instead, and what no assignment can beat."""

"""External offsets: progress on a Kafka cluster's topics that is stored outside Kafka. See docs/external-offsets.md."""

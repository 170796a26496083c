"""Offsets on a Kafka cluster's topics that are kept elsewhere than in Kafka: docs/offsets-elsewhere.md."""

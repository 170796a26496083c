"""Kafka, read through the admin interface of confluent-kafka (librdkafka). One file per Kafka API in ``requests``."""

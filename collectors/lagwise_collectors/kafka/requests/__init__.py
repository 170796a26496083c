"""What is asked of a Kafka cluster through confluent-kafka (librdkafka): a module for each API."""

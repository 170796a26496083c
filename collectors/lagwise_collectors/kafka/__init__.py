"""Kafka as a source: by our own requests (``kafka_protocol``), and by librdkafka where these are of no use. The latter
are in ``requests``, one file per Kafka API."""

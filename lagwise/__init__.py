"""Lagwise: consumer-lag monitor and capacity planner for Kafka, RocketMQ and Flink."""

#: The one place of the version: packages, the command and metrics take it from here; tests compare the Helm chart.
__version__ = "0.1.0"

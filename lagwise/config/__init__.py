"""The settings: their models (``model``), where they are read from (``source``), and how errors are reported."""

from lagwise.config.base import NameFilter
from lagwise.config.kafka import Cluster
from lagwise.config.load import load_config, validated
from lagwise.config.model import AnyCluster, CapacitySettings, Config, RetentionSettings, SparkSettings
from lagwise.config.rocketmq import RocketmqCluster

__all__ = [
    "AnyCluster",
    "CapacitySettings",
    "Cluster",
    "Config",
    "NameFilter",
    "RetentionSettings",
    "RocketmqCluster",
    "SparkSettings",
    "load_config",
    "validated",
]

"""The settings: what there is (``model``), where it comes from (``source``), and what is said of what cannot be."""

from lagwise.config.load import load_config, settings_file, validated
from lagwise.config.model import (
    Alerts,
    Analysis,
    AnyCluster,
    Capacity,
    Cluster,
    Config,
    Dashboard,
    Lake,
    Retention,
    Spark,
    Webhook,
)
from lagwise.config.rocketmq import RocketmqCluster
from lagwise.config.selection import GroupSelection

__all__ = [
    "Alerts",
    "Analysis",
    "AnyCluster",
    "Capacity",
    "Cluster",
    "Config",
    "Dashboard",
    "GroupSelection",
    "Lake",
    "Retention",
    "RocketmqCluster",
    "Spark",
    "Webhook",
    "load_config",
    "settings_file",
    "validated",
]

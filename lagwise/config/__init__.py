"""The settings: what there is (``model``), where it comes from (``source``), and what is said of what cannot be."""

from lagwise.config.clusters import AnyCluster, Cluster, GroupSelection, RocketmqCluster
from lagwise.config.load import load_config, settings_file, validated
from lagwise.config.model import (
    Alerts,
    Analysis,
    Capacity,
    Config,
    Dashboard,
    Lake,
    Retention,
    Spark,
    Webhook,
)

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

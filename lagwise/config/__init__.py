"""The settings: what there is (``model``), where it comes from (``source``), and what is said of what cannot be."""

from lagwise.config.elsewhere import FlinkJobs, OffsetFiles, OffsetsFrom, SparkCheckpoints, SqlOffsets
from lagwise.config.load import load_config, settings_file, validated
from lagwise.config.model import (
    Alerts,
    Analysis,
    Capacity,
    Cluster,
    Config,
    Dashboard,
    GroupSelection,
    Lake,
    Retention,
    Spark,
    Webhook,
)

__all__ = [
    "Alerts",
    "Analysis",
    "Capacity",
    "Cluster",
    "Config",
    "Dashboard",
    "FlinkJobs",
    "GroupSelection",
    "Lake",
    "OffsetFiles",
    "OffsetsFrom",
    "Retention",
    "Spark",
    "SparkCheckpoints",
    "SqlOffsets",
    "Webhook",
    "load_config",
    "settings_file",
    "validated",
]

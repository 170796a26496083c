"""The settings: what there is (``model``), where it comes from (``source``), and what is said of what cannot be."""

from lagwise.config.channels import (
    Alertmanager,
    AlertmanagerWebhook,
    AnyChannel,
    Apprise,
    Email,
    PagerDuty,
    Slack,
    Teams,
    Webhook,
)
from lagwise.config.elsewhere import FlinkJobs, OffsetFiles, OffsetsFrom, SparkCheckpoints, SqlOffsets
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
)
from lagwise.config.operating import Grouping, Heartbeat, MaintenanceWindow, Role, SignIn
from lagwise.config.rocketmq import LocalOffsetFiles, RocketmqCluster
from lagwise.config.selection import GroupSelection

__all__ = [
    "Alertmanager",
    "AlertmanagerWebhook",
    "Alerts",
    "Analysis",
    "AnyChannel",
    "AnyCluster",
    "Apprise",
    "Capacity",
    "Cluster",
    "Config",
    "Dashboard",
    "Email",
    "FlinkJobs",
    "GroupSelection",
    "Grouping",
    "Heartbeat",
    "Lake",
    "LocalOffsetFiles",
    "MaintenanceWindow",
    "OffsetFiles",
    "OffsetsFrom",
    "PagerDuty",
    "Retention",
    "RocketmqCluster",
    "Role",
    "SignIn",
    "Slack",
    "Spark",
    "SparkCheckpoints",
    "SqlOffsets",
    "Teams",
    "Webhook",
    "load_config",
    "settings_file",
    "validated",
]

"""The settings: their models (``model``), where they are read from (``source``), and how errors are reported."""

from lagwise.config.base import NameFilter
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
from lagwise.config.external_offsets import ExternalOffsetSource, FlinkJobs, OffsetFiles, SparkCheckpoints, SqlOffsets
from lagwise.config.kafka import Cluster
from lagwise.config.load import load_config, settings_file, validated
from lagwise.config.model import (
    AlertSettings,
    AnalysisSettings,
    AnyCluster,
    CapacitySettings,
    Config,
    DashboardSettings,
    LakeSettings,
    RetentionSettings,
    SparkSettings,
)
from lagwise.config.operating import Grouping, Heartbeat, MaintenanceWindow, Role, SignIn
from lagwise.config.rocketmq import LocalOffsetFiles, RocketmqCluster

__all__ = [
    "AlertSettings",
    "Alertmanager",
    "AlertmanagerWebhook",
    "AnalysisSettings",
    "AnyChannel",
    "AnyCluster",
    "Apprise",
    "CapacitySettings",
    "Cluster",
    "Config",
    "DashboardSettings",
    "Email",
    "ExternalOffsetSource",
    "FlinkJobs",
    "Grouping",
    "Heartbeat",
    "LakeSettings",
    "LocalOffsetFiles",
    "MaintenanceWindow",
    "NameFilter",
    "OffsetFiles",
    "PagerDuty",
    "RetentionSettings",
    "RocketmqCluster",
    "Role",
    "SignIn",
    "Slack",
    "SparkCheckpoints",
    "SparkSettings",
    "SqlOffsets",
    "Teams",
    "Webhook",
    "load_config",
    "settings_file",
    "validated",
]

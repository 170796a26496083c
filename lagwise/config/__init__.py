"""The settings: what there is (``model``), where it comes from (``source``), and what is said of what cannot be."""

from lagwise.config.load import load_config, settings_file, validated
from lagwise.config.model import (
    Alerts,
    Analysis,
    Capacity,
    Cluster,
    Config,
    Dashboard,
    Lake,
    Retention,
    Spark,
    Webhook,
)
from lagwise.config.operating import Grouping, Heartbeat, MaintenanceWindow, Role, SignIn
from lagwise.config.selection import GroupSelection

__all__ = [
    "Alerts",
    "Analysis",
    "Capacity",
    "Cluster",
    "Config",
    "Dashboard",
    "GroupSelection",
    "Grouping",
    "Heartbeat",
    "Lake",
    "MaintenanceWindow",
    "Retention",
    "Role",
    "SignIn",
    "Spark",
    "Webhook",
    "load_config",
    "settings_file",
    "validated",
]

"""Every setting that may hold a secret is declared as one, and shown without it."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from lagwise.config import Config
from lagwise.config.errors import models_of
from lagwise.config.secrecy import redacted, redacted_address, secret_part_of
from lagwise.platform.secrets import REDACTED

#: Text settings that everybody may see. A new text setting is added here, or annotated as one that may hold a secret
#: (``lagwise.config.values.SecretPart``).
PUBLIC = {
    "AlertSettings.dashboard_url", "Cluster.bootstrap", "Cluster.name", "Cluster.oauth_token_function", "Config.data",
    "DashboardSettings.host",
    "DashboardSettings.cluster_notes", "DashboardSettings.time_zone",
    "DashboardSettings.runbook_url", "Email.host", "Email.sender", "Email.to", "Email.username", "FlinkJobs.jobs",
    "NameFilter.exclude", "NameFilter.include", "LocalOffsetFiles.path", "MaintenanceWindow.name",
    "MaintenanceWindow.time_zone", "McpSettings.host", "RocketmqCluster.name", "RocketmqCluster.name_servers",
    "ScalingSettings.host",
    "ServerSettings.host", "SideTopicSettings.dead_letter", "SideTopicSettings.retry", "SignIn.claim",
    "SignIn.operators", "SignIn.viewers", "Team.members", "Team.name",
    "SparkSettings.driver_memory", "SparkSettings.master", "SqlOffsets.query", "TokenSettings.name",
    "_AlertmanagerChannel.labels", "_Channel.name",
    "_Files.group", "_Files.path", "_SourceSettings.name",
}  # fmt: skip


def undecided(model: type[BaseModel]) -> set[str]:
    """Text settings that are neither public nor declared to hold secrets, by the model that declares them."""
    found = set()
    for name, field in model.model_fields.items():
        for below in models_of(field.annotation):
            found |= undecided(below)
        declared = f"{_declaring(model, name)}.{name}"
        if _is_text(field.annotation) and declared not in PUBLIC and secret_part_of(field) is None:
            found.add(declared)
    return found


def _declaring(model: type[BaseModel], name: str) -> str:
    return next(one.__name__ for one in reversed(model.__mro__) if name in getattr(one, "__annotations__", ()))


def _is_text(annotation: Any) -> bool:
    return annotation is str or any(_is_text(part) for part in get_args(annotation))


def test_every_text_setting_is_declared_public_or_secret() -> None:
    assert undecided(Config) == set()


def test_a_new_setting_that_is_not_decided_on_is_found() -> None:
    class Extended(Config):
        smtp_login: dict[str, str] | None = None

    assert undecided(Extended) == {"Extended.smtp_login"}


@pytest.mark.parametrize(
    ("address", "is_shown_as"),
    [
        ("https://hooks.example/services/T0/B0/hunter2", f"https://hooks.example/{REDACTED}"),
        ("https://hooks.example:8443?token=hunter2", f"https://hooks.example:8443/{REDACTED}"),
        ("https://me:hunter2@hooks.example/", f"https://{REDACTED}@hooks.example"),
        ("https://hunter2@hooks.example/#hunter2", f"https://{REDACTED}@hooks.example/{REDACTED}"),
        ("http://jobmanager:8081", "http://jobmanager:8081"),
        ("hunter2", REDACTED),
    ],
)
def test_of_an_address_scheme_and_host_are_shown(address: str, is_shown_as: str) -> None:
    assert redacted_address(address) == is_shown_as


def test_settings_are_shown_without_secrets() -> None:
    settings = Config.model_validate(
        {
            "database": "postgresql+psycopg://me:hunt/er@2@host/db?sslmode=require&sslpassword=hunter2",
            "clusters": [
                {
                    "bootstrap": "h:1",
                    "librdkafka": {"sasl.password": "${env:X}", "ssl.ca.pem": "a", "socket.keepalive.enable": True},
                    "external_offsets": [
                        {"name": "s", "type": "sql", "url": "sqlite:///x.db", "query": "select"},
                        {"name": "f", "type": "flink", "url": "http://f:1/hunter2", "token": "${file:/run/t}"},
                    ],
                },
                {"system": "rocketmq", "name_servers": "n:1", "access_key": "hunter2", "secret_key": "${env:Y}"},
            ],
            "analysis": {
                "spark": {
                    "conf": {
                        "spark.hadoop.fs.s3a.secret.key": "hunter2",
                        "spark.hadoop.fs.azure.account.key.me.dfs.example": "hunter2",
                        "spark.hadoop.fs.s3a.endpoint": "http://u:hunter2@store",
                        "spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=hunter2 -Xss4m",
                        "spark.cores.max": "8",
                    }
                }
            },
            "alerts": {
                "channels": [
                    {"name": "a", "url": "https://hooks.example/hunter2", "authorization": "${env:Z}"},
                    {"name": "b", "type": "alertmanager", "url": "http://am:9093", "labels": {"team": "payments"}},
                ],
                "heartbeat": {"url": "https://hc.example/hunter2"},
            },
        }
    )
    tree = redacted(settings)
    assert "hunter2" not in str(tree)
    assert "hunt/er" not in str(tree)
    assert tree["database"] == f"postgresql+psycopg://me:{REDACTED}@host/db?sslmode=require&sslpassword={REDACTED}"
    kafka, rocketmq = tree["clusters"]
    assert kafka["librdkafka"] == {"sasl.password": "${env:X}", "ssl.ca.pem": "a", "socket.keepalive.enable": True}
    assert [place["url"] for place in kafka["external_offsets"]] == ["sqlite:///x.db", f"http://f:1/{REDACTED}"]
    assert (rocketmq["access_key"], rocketmq["secret_key"]) == (REDACTED, "${env:Y}")
    assert tree["analysis"]["spark"]["conf"] == {
        "spark.hadoop.fs.s3a.secret.key": REDACTED,
        "spark.hadoop.fs.azure.account.key.me.dfs.example": REDACTED,
        "spark.hadoop.fs.s3a.endpoint": f"http://u:{REDACTED}@store",
        "spark.driver.extraJavaOptions": f"-Djavax.net.ssl.trustStorePassword={REDACTED} -Xss4m",
        "spark.cores.max": "8",
    }
    webhook, alertmanager = tree["alerts"]["channels"]
    assert (webhook["url"], webhook["authorization"]) == (f"https://hooks.example/{REDACTED}", "${env:Z}")
    assert (alertmanager["url"], alertmanager["labels"]) == ("http://am:9093", {"team": "payments"})
    assert tree["scaling"] == settings.scaling.model_dump(mode="json"), "what holds no secret is shown as it is"

"""The settings that the processes of the product run with: file, environment and command line combined."""

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lagwise.config import Cluster, Config, validated
from lagwise.config.source import setting_variables
from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import ConfigError, LagwiseError
from lagwise.platform.files import replace_file, why
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_state_folder

#: The file in the state folder that holds the settings of the current or last run.
EFFECTIVE_SETTINGS = "effective.yaml"


def overridden(config: Config, *, bootstrap: str | None, data: str | None) -> Config:
    """The settings with the options of the command line applied. Raises ConfigError where they do not fit together."""
    changes: dict[str, Any] = {}
    if data is not None:
        changes["data"] = data
    if bootstrap is not None:
        if len(config.clusters) > 1:
            names = ", ".join(c.name for c in config.clusters)
            raise ConfigError(
                f"--bootstrap sets one cluster, but the settings have several ({names}): leave it out",
                code=ErrorCode.REQUEST_REJECTED,
            )
        if config.clusters and not isinstance(config.clusters[0], Cluster):
            name = config.clusters[0].name
            raise ConfigError(
                f"--bootstrap sets a Kafka cluster, but {name} in the settings is not one: leave it out",
                code=ErrorCode.REQUEST_REJECTED,
            )
        cluster = config.clusters[0].model_dump(exclude_unset=True) if config.clusters else {}
        changes["clusters"] = [cluster | {"bootstrap": bootstrap}]
    return validated(config.model_dump(exclude_unset=True) | changes, where="the command line")


def anchored(config: Config) -> Config:
    """The settings with absolute local paths, which mean the same in every working directory."""
    rules = config.alerts.rules_file
    channels = tuple(
        channel.model_copy(update={"ca_file": ca_file.expanduser().resolve()}) if ca_file else channel
        for channel in config.alerts.channels
        for ca_file in [getattr(channel, "ca_file", None)]
    )
    alerts = {"rules_file": rules and rules.expanduser().resolve(), "channels": channels}
    sign_in = config.dashboard.sign_in
    if sign_in is not None:
        sign_in = sign_in.model_copy(update={"auth_file": sign_in.auth_file.expanduser().resolve()})
    return config.model_copy(
        update={
            "data": config.data if config.data_is_remote else config.lake_uri.removesuffix("/lake"),
            "state_dir": config.state,
            "alerts": config.alerts.model_copy(update=alerts),
            "dashboard": config.dashboard.model_copy(update={"sign_in": sign_in}),
        }
    )


def with_dashboard_port(config: Config) -> Config:
    """The settings with a free port in place of 0, and with alert links to that port by default."""
    port = config.dashboard.port or free_port(config.dashboard.host)
    return linked(config.model_copy(update={"dashboard": config.dashboard.model_copy(update={"port": port})}))


def linked(config: Config) -> Config:
    """The settings with alert links to the dashboard by default, if its port is set."""
    host, port = config.dashboard.host, config.dashboard.port
    if "dashboard_url" in config.alerts.model_fields_set or port == 0:
        return config
    alerts = config.alerts.model_copy(update={"dashboard_url": dashboard_address(host, port)})
    return config.model_copy(update={"alerts": alerts})


def fingerprint(config: Config) -> str:
    """Twelve hexadecimal digits: equal for two processes exactly if they run with the same settings."""
    tree = anchored(config).model_dump(mode="json")
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:12]


def summary(config: Config) -> str:
    """The settings of a process in one line, for its log. Holds no secret."""
    clusters = ", ".join(cluster.name for cluster in config.clusters) or "none"
    sign_in = "required" if config.dashboard.sign_in else "off"
    return f"settings {fingerprint(config)}: data {anchored(config).data}, clusters {clusters}, sign-in {sign_in}"


def dashboard_address(host: str, port: int) -> str:
    """The address of the dashboard for a browser on this machine."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 (compared, not listened on)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free at this moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def write_settings(config: Config, file: str = EFFECTIVE_SETTINGS) -> Path:
    """Write the settings for child processes into a file in the state folder. Secrets stay references.

    Only this user can read the file, because addresses may carry tokens. Raises LagwiseError where it cannot be
    written.
    """
    state = config.state
    target = state / file
    config = anchored(config)
    text = "# Written by lagwise for its processes. The next start overwrites any change.\n"
    text += yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    try:
        make_state_folder(state)
        replace_file(target, text.encode())
    except OSError as error:
        raise LagwiseError(
            f"cannot write to the state folder {clean(str(state))}: {why(error)}",
            code=code_of_system(error, ErrorCode.FILE_NOT_WRITABLE),
        ) from error
    return target


def child_environment(settings: Path, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that runs with the settings of a file, and with no others.

    It is ``environment`` (by default that of this process) without the variables that are settings.
    """
    env = dict(os.environ if environment is None else environment)
    for name in setting_variables(env):  # the file has them already, and they would override --data and --bootstrap
        del env[name]
    env["LAGWISE_CONFIG"] = str(settings)
    env["PYTHONUNBUFFERED"] = "1"
    return env

"""Which processes make up the product, and the one way in which each is given its settings."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from lagwise.config import Config
from lagwise.platform.health import ALERTS, ANALYSIS, COLLECTOR, DASHBOARD, SCALING
from lagwise_app.supervisor.effective_settings import child_environment, dashboard_address, write_settings
from lagwise_app.supervisor.supervisor import ProcessSpec, Supervisor

#: Command of each part of ours, by the part's name. -P: whatever lies in the working directory is not imported.
_COMMANDS = {COLLECTOR: "collect", ANALYSIS: "analyze", ALERTS: "alert", SCALING: "scaling", DASHBOARD: "dashboard"}


@contextlib.contextmanager
def running_product(config: Config, *, dashboard: bool = True) -> Iterator[Supervisor]:
    """Run the product on its state folder, which the caller has locked: started when entered, ended when left.

    Raises LagwiseError where the state folder cannot be written.
    """
    settings = write_settings(config)
    with Supervisor(product_parts(config, settings, dashboard=dashboard), config.state) as supervisor:
        yield supervisor


def product_parts(config: Config, settings: Path, *, dashboard: bool = True) -> list[ProcessSpec]:
    """The parts of the product, in the order in which data flows through them; all run with the file ``settings``."""
    left_out = {SCALING} if config.scaling.port is None else set()
    left_out |= set() if dashboard else {DASHBOARD}
    return [_part(name, settings, config) for name in _COMMANDS if name not in left_out]


def part_command(name: str) -> list[str]:
    """The command line of a part, for an environment made by :func:`child_environment`."""
    return [sys.executable, "-P", "-m", "lagwise", _COMMANDS[name]]


def _part(name: str, settings: Path, config: Config) -> ProcessSpec:
    # Streamlit's own lines in the dashboard's log are about single pages, and would stand here until the next one.
    host, port = config.dashboard.host, config.dashboard.port
    line = f"serves {dashboard_address(host, port)}" if name == DASHBOARD else ""
    return ProcessSpec(name, part_command(name), child_environment(settings), line)

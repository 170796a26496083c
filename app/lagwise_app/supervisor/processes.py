"""The processes that make up the product, and how each is started."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from lagwise.config import Config
from lagwise.platform.health import ASSISTANTS, COMMANDS, DASHBOARD, SCALING, SERVER
from lagwise_app.supervisor.effective_settings import child_environment, dashboard_address, write_settings
from lagwise_app.supervisor.supervisor import ProcessSpec, Supervisor


@contextlib.contextmanager
def running_product(config: Config, *, dashboard: bool = True) -> Iterator[Supervisor]:
    """Run the product on its state folder, which the caller has locked. Leaving the context ends the product.

    Raises LagwiseError where the state folder cannot be written.
    """
    settings = write_settings(config)
    with Supervisor(product_processes(config, settings, dashboard=dashboard), config.state) as supervisor:
        yield supervisor


def product_processes(config: Config, settings: Path, *, dashboard: bool = True) -> list[ProcessSpec]:
    """The processes of the product, in the order of the data flow. All run with the file ``settings``."""
    left_out = {SCALING} if config.scaling.port is None else set()
    left_out |= {SERVER} if config.server.port is None else set()
    left_out |= {ASSISTANTS} if config.mcp.port is None else set()
    left_out |= set() if dashboard else {DASHBOARD}
    return [_spec_of(name, settings, config) for name in COMMANDS if name not in left_out]


def process_command(name: str) -> list[str]:
    """The command line of a process, for an environment made by :func:`child_environment`.

    ``-P`` keeps Python from importing what lies in the working directory.
    """
    return [sys.executable, "-P", "-m", "lagwise", *COMMANDS[name]]


def _spec_of(name: str, settings: Path, config: Config) -> ProcessSpec:
    # Shown in place of the log: Streamlit logs single page errors, and the last one would be shown until the next; what
    # the others log before their first heartbeat is no progress that a person could follow.
    host, port = config.dashboard.host, config.dashboard.port
    line = f"serves {dashboard_address(host, port)}" if name == DASHBOARD else "starting"
    return ProcessSpec(name, process_command(name), child_environment(settings), line)

"""Serves the pages: Streamlit's server in this process, with the settings that the process was started with.

The server and its pages have the settings from one object, so that the pages cannot read others than those that the
address, the port and the sign-in were taken from.
"""

import contextlib
import gc
import importlib
import importlib.util
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import streamlit.logger

from lagwise.config import Config
from lagwise.config.auth_file import check_auth_file
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError, MissingRequirement
from lagwise_dashboard import context
from lagwise_dashboard.server import streamlit_options
from lagwise_dashboard.server.http_layer import DashboardApp

_PAGE = Path(__file__).resolve().parent / "app.py"
#: What pages are made of: the slow modules, and what brings the others along. Streamlit would load them when the first
#: reader comes, who would wait a second or two for it.
_MODULES = (
    "pandas",
    "plotly.graph_objects",
    "plotly.subplots",
    "pyarrow.pandas_compat",
    "sqlalchemy.dialects.sqlite",
    "PIL.PngImagePlugin",  # the page's icon
    "streamlit.emojis",
    "streamlit.material_icon_names",
    "streamlit.runtime.scriptrunner.magic_funcs",
    "lagwise_dashboard.alert_reader",
    "lagwise_dashboard.pages.health.troubles",
    "lagwise_dashboard.widgets.empty_page",
    "lagwise_dashboard.widgets.freshness",
    "lagwise_dashboard.pages.overview.group_list",
    "lagwise_dashboard.pages.overview.owners",
    "lagwise_dashboard.pages.group.group_charts",
    "lagwise_dashboard.server.first_sight_content",
    "lagwise_dashboard.widgets.page",
    "lagwise_dashboard.widgets.browser_window",
    "lagwise_dashboard.widgets.finder",
    "lagwise_dashboard.widgets.skip_link",
    "lagwise_dashboard.pages.overview.fleet_strip",
    "lagwise_dashboard.pages.group.partition_charts",
    "lagwise_dashboard.queries.overview",
)


def serve_forever(config: Config, announce: Callable[[], None]) -> None:
    """Serve the pages on ``dashboard.host`` and ``dashboard.port``; SIGINT or SIGTERM ends the process with 0.

    ``announce`` is called before the server starts. Raises LagwiseError instead, having served nothing, if the settings
    name a sign-in that cannot be put up, or an address that cannot be listened on.
    """
    _require_gate(config)
    _require_address(config.dashboard.host, config.dashboard.port)
    announce()
    context.use(config)
    _redact_streamlit_log()
    app = DashboardApp(_PAGE)
    threading.Thread(target=_prepare, args=(app,), name="prepare", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # of this server, after it has closed its connections
    sys.argv = [str(_PAGE)]  # Streamlit puts the folder of what was started in front of every import
    app.run(config=streamlit_options.options(config))


def _redact_streamlit_log() -> None:
    """Send Streamlit's log through ours, which redacts secrets: errors of a page may quote addresses."""

    def hand_over(logger: logging.Logger) -> None:
        logger.handlers.clear()
        logger.propagate = True

    streamlit.logger.setup_formatter = hand_over
    streamlit.logger.update_formatter()


def _require_gate(config: Config) -> None:
    """Raise LagwiseError if the settings name a sign-in that cannot be put up."""
    if config.dashboard.sign_in is None:
        return
    check_auth_file(config.dashboard.sign_in.auth_file)
    if importlib.util.find_spec("authlib") is None:
        raise MissingRequirement(
            "dashboard.sign_in needs authlib: install lagwise[dashboard]", code=ErrorCode.EXTRA_MISSING
        )


def _require_address(host: str, port: int) -> None:
    """Raise ConfigError if the address cannot be listened on, of which Streamlit says only that it is not available."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            advice = "another dashboard may be running there; choose another dashboard.port"
            raise ConfigError(
                f"cannot listen on {host}:{port} (dashboard): {error.strerror}; {advice}", code=ErrorCode.CANNOT_LISTEN
            ) from error


def _prepare(app: DashboardApp) -> None:
    """What readers should not have to wait for. A module that cannot be loaded is the page's to complain about."""
    with contextlib.suppress(ImportError):
        for module in _MODULES:
            importlib.import_module(module)
    gc.freeze()  # what was loaded stays: nobody has to look through it for garbage
    app.files.compress()

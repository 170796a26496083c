"""Serves the pages: Streamlit's server in this process, with the settings that the process was started with.

The server and its pages have the settings from one object, so that the pages cannot read others than those that the
address, the port and the sign-in were taken from.
"""

import contextlib
import importlib
import importlib.util
import signal
import sys
import threading
from pathlib import Path

from lagwise.config import Config
from lagwise.config.auth_file import check_auth_file
from lagwise.errors import MissingRequirement
from lagwise_dashboard import server_options, settings
from lagwise_dashboard.web import Dashboard

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
    "lagwise_dashboard.components.advice",
    "lagwise_dashboard.components.empty",
    "lagwise_dashboard.components.freshness",
    "lagwise_dashboard.components.group_cards",
    "lagwise_dashboard.components.group_charts",
    "lagwise_dashboard.components.group_table",
    "lagwise_dashboard.components.page",
    "lagwise_dashboard.owners",
    "lagwise_dashboard.queries.overview",
)


def serve_forever(config: Config) -> None:
    """Serve the pages on ``dashboard.host`` and ``dashboard.port``; SIGINT or SIGTERM ends the process with 0.

    Raises LagwiseError, having served nothing, where the settings name a sign-in that people cannot be asked for. A
    port that is taken ends the process with 1.
    """
    require_gate(config)
    settings.use(config)
    app = Dashboard(_PAGE)
    threading.Thread(target=_prepare, args=(app,), name="prepare", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # of this server, after it has closed its connections
    sys.argv = [str(_PAGE)]  # Streamlit puts the folder of what was started in front of every import
    app.run(config=server_options.options(config))


def require_gate(config: Config) -> None:
    """Raise LagwiseError where the settings name a sign-in that cannot be put up."""
    if config.dashboard.sign_in is None:
        return
    check_auth_file(config.dashboard.sign_in.auth_file)
    if importlib.util.find_spec("authlib") is None:
        raise MissingRequirement("dashboard.sign_in needs authlib: install lagwise[dashboard]")


def _prepare(app: Dashboard) -> None:
    """What readers should not have to wait for. A module that cannot be loaded is the page's to complain about."""
    with contextlib.suppress(ImportError):
        for module in _MODULES:
            importlib.import_module(module)
    app.files.compress()

"""Streamlit's own command, with what pages are made of loaded before anybody asks for one.

``python -m lagwise_dashboard.serve run app.py …`` is ``python -m streamlit run app.py …``: Streamlit loads the modules
of a page when its first reader comes, who would wait a second or two for it.
"""

import importlib
import sys
import threading

from streamlit.web import cli

#: The slow ones, and what brings the others along.
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


def load() -> None:
    """Load the modules. One that cannot be loaded is the page's to complain about, which says what to do."""
    for module in _MODULES:
        try:
            importlib.import_module(module)
        except ImportError:
            return


if __name__ == "__main__":
    threading.Thread(target=load, name="load", daemon=True).start()
    sys.exit(cli.main(prog_name="streamlit"))

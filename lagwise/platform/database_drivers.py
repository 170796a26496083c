"""What is the same wherever a database is spoken to: its driver may be missing, and a server may not answer."""

import math
from collections.abc import Container

#: Drivers that hand options on to PostgreSQL's own library.
_LIBPQ = frozenset({"psycopg", "psycopg2"})


def missing_driver(error: ImportError) -> str:
    """What is not installed, and how to install it."""
    name = error.name or "of this kind of database"
    if name.split(".")[0] == "psycopg" or "pq wrapper" in str(error):
        return "the driver psycopg is not installed: pip install 'lagwise[postgresql]'"
    return f"the driver {name} is not installed: install it beside Lagwise"


def patience(driver: str, said: Container[str], connect_seconds: float) -> dict[str, str]:
    """Options of a connection that is given up where the server, or the network to it, is gone without a word.

    Without them a connection waits for two minutes to be made, and a lost one for hours. ``said`` are the options that
    somebody has given already, which count.
    """
    if driver not in _LIBPQ:
        return {}
    options = {
        "application_name": "lagwise",
        "connect_timeout": str(max(2, math.ceil(connect_seconds))),  # whole seconds; below two it takes two
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
    }
    return {name: value for name, value in options.items() if name not in said}

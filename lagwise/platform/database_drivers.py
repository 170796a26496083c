"""Drivers of databases: a missing one, and the options that make a silent server fail soon."""

import math
from collections.abc import Container

#: Drivers that pass options to PostgreSQL's own library.
_LIBPQ = frozenset({"psycopg", "psycopg2"})


def missing_driver(error: ImportError) -> str:
    """What is not installed, and how to install it."""
    name = error.name or "of this kind of database"
    if name.split(".")[0] == "psycopg" or "pq wrapper" in str(error):
        return "the driver psycopg is not installed: pip install 'lagwise[postgresql]'"
    return f"the driver {name} is not installed: install it in Lagwise's environment"


def timeout_options(driver: str, given: Container[str], connect_seconds: float) -> dict[str, str]:
    """Options that end a connection soon once the server, or the network to it, no longer answers.

    Without them connecting waits for two minutes, and a lost connection for hours. Options in ``given`` are left out.
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
    return {name: value for name, value in options.items() if name not in given}

"""Readers without a browser who are signed in: they hold the cookie that Streamlit gives after a sign-in."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string

from tests.dashboard.socket_client import Connection, connected

_SECRET = "a-cookie-secret-of-the-test-alone"


def write_auth_file(file: Path, address: str, provider: str = "http://127.0.0.1:9") -> None:
    """Settings of a sign-in for a server at this address. Who already has the cookie needs no ``provider``."""
    settings = {
        "redirect_uri": f"{address}/oauth2callback",
        "cookie_secret": _SECRET,
        "client_id": "lagwise",
        "client_secret": "a-client-secret-of-the-test-alone",
        "server_metadata_url": f"{provider}/.well-known/openid-configuration",
    }
    file.write_text("[auth]\n" + "".join(f'{key} = "{value}"\n' for key, value in settings.items()), encoding="utf-8")


def cookies_for(claims: Mapping[str, object], address: str) -> dict[str, str]:
    """The cookies of somebody of whom the provider said this, by name."""
    value = json.dumps({"origin": address, "is_logged_in": True, **claims})
    return {
        "_streamlit_user": create_signed_value(_SECRET, "_streamlit_user", value).decode("ascii"),
        "_streamlit_xsrf": generate_xsrf_token_string(),
    }


@contextmanager
def connected_as(claims: Mapping[str, object], address: str) -> Iterator[Connection]:
    """The socket of a page that somebody has opened of whom the provider said this."""
    cookies = cookies_for(claims, address)
    headers = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    with connected(address, origin=address, headers=headers, token=cookies["_streamlit_xsrf"]) as connection:
        yield connection


def drawn_for(claims: Mapping[str, object], address: str, page: str = "", query: str = "") -> str:
    """Everything that a page sends to somebody of whom the provider said this."""
    with connected_as(claims, address) as connection:
        return connection.ask(page, query)

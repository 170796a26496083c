"""Readers without a browser who are signed in: they hold the cookie that Streamlit gives after a sign-in."""

import json
from collections.abc import Mapping
from pathlib import Path

from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string

from tests.dashboard.socket_client import drawn

_SECRET = "a-cookie-secret-of-the-test-alone"


def write_auth_file(file: Path, address: str) -> None:
    """Settings of a sign-in for a server at this address. No provider is asked."""
    settings = {
        "redirect_uri": f"{address}/oauth2callback",
        "cookie_secret": _SECRET,
        "client_id": "lagwise",
        "client_secret": "a-client-secret-of-the-test-alone",
        "server_metadata_url": "http://127.0.0.1:9/.well-known/openid-configuration",
    }
    file.write_text("[auth]\n" + "".join(f'{key} = "{value}"\n' for key, value in settings.items()), encoding="utf-8")


def drawn_for(claims: Mapping[str, object], address: str, page: str = "", query: str = "") -> str:
    """Everything that a page sends to somebody of whom the provider said this."""
    value = json.dumps({"origin": address, "is_logged_in": True, **claims})
    cookie = create_signed_value(_SECRET, "_streamlit_user", value).decode("ascii")
    token = generate_xsrf_token_string()
    headers = {"cookie": f"_streamlit_user={cookie}; _streamlit_xsrf={token}"}
    return drawn(address, page, query, origin=address, headers=headers, token=token)

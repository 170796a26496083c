"""Who looks at the page, and what he may do. Asked anew at every run and again before every action.

With sign-in (``dashboard.sign_in``) the identity provider says who somebody is and the settings which role that gives.
Without it there is one person: whoever sits at this machine. He is an operator where the page is served to this machine
alone; anybody who comes from elsewhere, or through a proxy, only looks.
"""

import getpass
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from lagwise.config import Config, Role
from lagwise.errors import ConfigError
from lagwise_dashboard import literal, settings

#: What a proxy adds: then the request is not from this machine, wherever it came from last.
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a name; ``role`` None may not even look. ``signed_in``: a provider vouches for the name."""

    name: str
    role: Role | None
    signed_in: bool

    @property
    def may_act(self) -> bool:
        """Whether he acknowledges, silences, and sends again."""
        return self.role is Role.OPERATOR


def current() -> Person | None:
    """The person at the other end; None where he has yet to sign in. Raises ConfigError."""
    config = settings.config()
    if config.dashboard.sign_in is None:
        return local(config, {name.lower(): value for name, value in st.context.headers.items()})
    if not config.dashboard.sign_in.auth_file.expanduser().is_file():
        raise ConfigError(f"dashboard.sign_in.auth_file: there is no file {config.dashboard.sign_in.auth_file}")
    if not st.user.is_logged_in:
        return None
    return identified(config, st.user.to_dict())


def identified(config: Config, claims: Mapping[str, Any]) -> Person:
    """Somebody whom the identity provider knows. Pure."""
    sign_in = config.dashboard.sign_in
    name = next((str(claims[key]) for key in ("email", "preferred_username", "name", "sub") if claims.get(key)), "?")
    return Person(name, sign_in.role(dict(claims)) if sign_in else None, signed_in=True)


def local(config: Config, headers: Mapping[str, str]) -> Person:
    """Somebody without sign-in, by how the page is served and asked for (headers by lower-case name)."""
    own = _is_loopback(config.dashboard.host) and _is_loopback(_host(headers.get("host", "localhost")))
    is_direct = own and not any(name in headers for name in _PROXY_HEADERS)
    return Person(_user_of_this_machine(), Role.OPERATOR if is_direct else Role.VIEWER, signed_in=False)


def gate() -> None:
    """Let through who may look; draw what the others need, and end the run."""
    person = current()
    if person is not None and person.role is not None:
        return
    st.header("Lagwise", anchor=False)
    if person is None:
        st.write("Sign in to see which consumer groups are in trouble.")
        st.button("Sign in", on_click=st.login, type="primary", icon=":material/login:")
    else:
        st.error(
            f"**{literal.markdown(person.name)} may not look at this.** Somebody who runs Lagwise can change that: "
            "`dashboard.sign_in` in the settings says who may.",
            icon=":material/lock:",
        )
        st.button("Sign out", on_click=st.logout, icon=":material/logout:")
    st.stop()


def sign_out() -> None:
    """Who is signed in, and the way out; nothing where there is no sign-in."""
    if settings.config().dashboard.sign_in is None:
        return
    person = current()
    if person is not None:
        help_text = f"Signed in as {literal.markdown(person.name)}"
        st.button("Sign out", on_click=st.logout, help=help_text, icon=":material/logout:", type="tertiary")


def _host(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _user_of_this_machine() -> str:
    try:
        return f"{getpass.getuser()} (this machine)"
    except (OSError, KeyError):
        return "somebody at this machine"

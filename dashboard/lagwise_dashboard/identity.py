"""Who uses the page, and what they may do. Checked anew at every run, and again before every action.

With sign-in (``dashboard.sign_in``) the identity provider says who somebody is and the settings which role that gives.
Without it there is one person: whoever sits at this machine. They are an operator if the server listens on loopback
alone and a browser opened the page from it directly; everybody else may only read.
"""

import getpass
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lagwise.config import Config
from lagwise.config.auth_file import check_auth_file
from lagwise.config.operating import Access, Role, SignIn
from lagwise.config.visibility import EVERYTHING, NOTHING, Visibilities
from lagwise_alerts.operate import Alert, Operator, Silence, Via
from lagwise_dashboard import context, escaping

#: The headers with which browsers open a page's socket; scripts cannot add any. Every other header was added on the
#: way, so a proxy stands between and the request may come from anywhere. Proxies invent their own names: a list of
#: those would never be complete.
_SENT_BY_BROWSERS = re.compile(
    r"host|origin|connection|upgrade|pragma|cache-control|user-agent|cookie|dnt|priority|accept(-[a-z]+)*|sec(-[a-z]+)+"
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a name; without a ``role`` they may not even read. ``signed_in``: a provider vouches for the name.

    ``advice`` is how to become an operator, for those who are not.
    """

    name: str
    role: Role | None
    signed_in: bool
    advice: str = ""
    acts_on: Visibilities = NOTHING

    @property
    def may_act(self) -> bool:
        """Whether they acknowledge and silence something."""
        return self.role is Role.OPERATOR

    @property
    def may_act_on_everything(self) -> bool:
        """Whether they act on whatever it is, also on what is about no group or about several."""
        return self.may_act and self.acts_on.is_unlimited

    def may_act_on(self, cluster: str | None, group: str | None) -> bool:
        """Whether they act on what is about this group; None is none, or several."""
        return self.may_act and self.acts_on.shows(cluster, group)

    def may_act_on_alert(self, alert: Alert) -> bool:
        """Whether they acknowledge and silence it."""
        return self.may_act_on(alert.subject.cluster, alert.subject.group)

    def may_act_on_silence(self, silence: Silence) -> bool:
        """Whether they end it."""
        return self.may_act_on(*silence.matcher.one_group)


def current() -> Person | None:
    """The person at the other end; None if they have yet to sign in. Raises ConfigError."""
    config = context.config()
    if config.dashboard.sign_in is None:
        headers = st.context.headers
        return local(config, {name.lower(): ", ".join(headers.get_all(name)) for name in headers})
    check_auth_file(config.dashboard.sign_in.auth_file)
    if not st.user.is_logged_in:
        return None
    return identified(config, st.user.to_dict())


def identified(config: Config, claims: Mapping[str, Any]) -> Person:
    """Somebody whom the identity provider knows. Pure."""
    sign_in = config.dashboard.sign_in
    access = sign_in.access(dict(claims)) if sign_in else Access()
    # By this name saved views are theirs: nothing that they can choose for themselves may become it.
    known = ("email", "preferred_username", "sub") if claims.get("email_verified") is not False else ("sub",)
    name = next((str(claims[key]) for key in known if claims.get(key)), "?")
    advice = "`dashboard.sign_in` says who has it"
    return Person(name, access.role, signed_in=True, advice=advice, acts_on=access.acts_on)


def acts_on_everything() -> bool:
    """Whether the reader acts on what is about no group, or about several."""
    person = current()
    return person is not None and person.may_act_on_everything


def operator(person: Person) -> Operator:
    """The person as the alerts record them, and know what they may act on."""
    return Operator(person.name, Via.DASHBOARD, person.acts_on)


def access_of_reader(sign_in: SignIn) -> Access:
    """What somebody who is signed in may see and do; nothing where nobody is, or where no run of a page asks."""
    if get_script_run_ctx(suppress_warning=True) is None or not st.user.is_logged_in:
        return Access()
    return sign_in.access(st.user.to_dict())


def local(config: Config, headers: Mapping[str, str]) -> Person:
    """Somebody without sign-in, by how the page is served and asked for (headers by lower-case name)."""
    advice = _why_not_this_machine(config, headers)
    role, acts_on = (Role.VIEWER, NOTHING) if advice else (Role.OPERATOR, EVERYTHING)
    return Person(_user_of_this_machine(), role, signed_in=False, advice=advice or "", acts_on=acts_on)


def _why_not_this_machine(config: Config, headers: Mapping[str, str]) -> str | None:
    """What keeps a request from passing for one of this machine's user, and what to do; None if nothing does.

    A program can send whatever it likes. This distinguishes what browsers send: a page of this server opened on this
    machine, pages of others, and whatever reaches the server through a proxy.
    """
    if not _is_loopback(config.dashboard.host):
        return "others reach this address, so set `dashboard.sign_in`"
    host = headers.get("host", "")
    if not _is_loopback(_host(host)):
        return "open the page on the machine that serves it, or set `dashboard.sign_in`"
    if headers.get("origin") not in [f"{scheme}://{host}" for scheme in ("http", "https")]:
        return "open the page itself in a browser: this request came from somewhere else"
    added = sorted(name for name in headers if not _SENT_BY_BROWSERS.fullmatch(name))
    if added:
        names = ", ".join(escaping.markdown(name) for name in added[:3])
        return f"a proxy added {names} to the request: open the page without it, or set `dashboard.sign_in`"
    return None


def gate() -> None:
    """Let through who may read; draw what the others need, and end the run."""
    person = current()
    if person is not None and person.role is not None:
        return
    st.header("Lagwise", anchor=False)
    if person is None:
        st.write("Sign in to see which consumer groups are in trouble.")
        st.button("Sign in", on_click=st.login, type="primary", icon=":material/login:")
    else:
        st.error(
            f"**{escaping.markdown(person.name)} has no access.** Whoever runs Lagwise can grant it in the setting "
            "`dashboard.sign_in`.",
            icon=":material/lock:",
        )
        st.button("Sign out", on_click=st.logout, icon=":material/logout:")
    st.stop()


def sign_out() -> None:
    """Who is signed in, and the way out; nothing where there is no sign-in."""
    if context.config().dashboard.sign_in is None:
        return
    person = current()
    if person is not None:
        help_text = f"Signed in as {escaping.markdown(person.name)}"
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
        return "unknown user (this machine)"

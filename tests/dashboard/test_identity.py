"""Who may look and who may act: in tables, and asked of the real server."""

from typing import Any

import pytest

from lagwise.config import Config
from lagwise.config.operating import Role
from lagwise_dashboard import identity


def config(host: str = "127.0.0.1", **sign_in: Any) -> Config:
    dashboard: dict[str, Any] = {"host": host}
    if sign_in:
        dashboard["sign_in"] = {"auth_file": "/etc/lagwise/auth.toml", **sign_in}
    return Config.model_validate({"dashboard": dashboard})


#: What Chromium, Firefox and Safari send to open a page's socket.
BROWSER = {
    "host": "127.0.0.1:8501",
    "origin": "http://127.0.0.1:8501",
    "connection": "keep-alive, Upgrade",
    "upgrade": "websocket",
    "pragma": "no-cache",
    "cache-control": "no-cache",
    "user-agent": "Mozilla/5.0",
    "accept": "*/*",
    "accept-encoding": "gzip, deflate, br, zstd",
    "accept-language": "en-US,en;q=0.9",
    "cookie": "_streamlit_xsrf=2|98ed1975",
    "dnt": "1",
    "sec-gpc": "1",
    "sec-fetch-dest": "websocket",
    "sec-fetch-mode": "websocket",
    "sec-fetch-site": "same-origin",
    "sec-ch-ua-platform": '"Linux"',
    "sec-websocket-version": "13",
    "sec-websocket-key": "GJhz75wtYBEq7f97C50juQ==",
    "sec-websocket-extensions": "permessage-deflate; client_max_window_bits",
    "sec-websocket-protocol": "streamlit, 2|98ed1975",
}


def opened_at(host: str, scheme: str = "http") -> dict[str, str]:
    """The headers of a browser that opened the page at this host and port."""
    return BROWSER | {"host": host, "origin": f"{scheme}://{host}"}


@pytest.mark.parametrize(
    ("host", "headers", "role", "why"),
    [
        ("127.0.0.1", BROWSER, Role.OPERATOR, "whoever sits at the machine"),
        ("127.0.0.1", opened_at("localhost:8501"), Role.OPERATOR, "by that name, too"),
        ("::1", opened_at("[::1]:8501"), Role.OPERATOR, "and by the other loopback"),
        ("127.0.0.1", opened_at("localhost:9000"), Role.OPERATOR, "through a tunnel of ssh, which takes a login"),
        ("127.0.0.1", opened_at("localhost:8501", "https"), Role.OPERATOR, "with a certificate"),
        ("127.0.0.1", opened_at("localhost"), Role.OPERATOR, "on the port that goes without saying"),
        ("0.0.0.0", BROWSER, Role.VIEWER, "others reach it, and say what they like"),
        ("10.0.0.7", opened_at("10.0.0.7:8501"), Role.VIEWER, "others reach it"),
        ("127.0.0.1", opened_at("lagwise.example"), Role.VIEWER, "a name that a stranger's page made lead here"),
        ("127.0.0.1", opened_at("127.0.0.1.evil.example"), Role.VIEWER, "looks like it, and is not"),
        ("127.0.0.1", {}, Role.VIEWER, "nothing is known of it"),
        ("127.0.0.1", {"host": "127.0.0.1:8501"}, Role.VIEWER, "no browser, or a proxy that adds nothing"),
        ("127.0.0.1", BROWSER | {"origin": ""}, Role.VIEWER, "likewise"),
        ("127.0.0.1", BROWSER | {"origin": "null"}, Role.VIEWER, "a page without an origin"),
        ("127.0.0.1", BROWSER | {"origin": "http://localhost:3000"}, Role.VIEWER, "another server of this machine"),
        ("127.0.0.1", BROWSER | {"origin": "http://localhost:8501"}, Role.VIEWER, "another name than it was asked by"),
        ("127.0.0.1", BROWSER | {"origin": "http://127.0.0.1"}, Role.VIEWER, "another port"),
        ("127.0.0.1", BROWSER | {"origin": "http://127.0.0.1:85010"}, Role.VIEWER, "looks like it, and is not"),
        ("127.0.0.1", BROWSER | {"origin": "https://lagwise.example"}, Role.VIEWER, "a proxy that rewrites the host"),
        ("127.0.0.1", BROWSER | {"origin": "http://127.0.0.1:8501, http://a"}, Role.VIEWER, "two headers of that name"),
        ("127.0.0.1", {k: v for k, v in BROWSER.items() if k != "host"}, Role.VIEWER, "no host"),
    ],
)
def test_without_sign_in(host: str, headers: dict[str, str], role: Role, why: str) -> None:
    person = identity.local(config(host), headers)
    assert person.role is role, why
    assert bool(person.advice) is (role is Role.VIEWER)


#: What proxies add, each of them alone: found in the documentation of the usual ones and by trying.
ADDED_BY_PROXIES = (
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X-Forwarded-Server",
    "X-Forwarded-User",
    "X-Real-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "X-Original-URI",
    "X-Auth-Request-Email",
    "X-Envoy-External-Address",
    "X-Amzn-Trace-Id",
    "X-Request-Id",
    "CF-Connecting-IP",
    "CDN-Loop",
    "Fastly-Client-IP",
    "True-Client-IP",
    "Remote-User",
    "Authorization",
    "Traceparent",
    "B3",
    "Max-Forwards",
    "Front-End-Https",
    "SSL-Client-Verify",
    "A-Name-Nobody-Has-Thought-Of",
)


@pytest.mark.parametrize("name", ADDED_BY_PROXIES)
def test_whatever_a_proxy_adds_gives_it_away(name: str) -> None:
    person = identity.local(config(), BROWSER | {name.lower(): "x"})
    assert person.role is Role.VIEWER
    assert "a proxy added" in person.advice


def test_a_header_s_name_is_shown_letter_by_letter() -> None:
    assert r"x\-\`a\*" in identity.local(config(), BROWSER | {"x-`a*": "1"}).advice


MAIL = {"operators": [".*@ops\\.example"], "viewers": [".*@.*\\.example"]}
GROUPS = {"claim": "groups", "operators": ["sre"], "viewers": ["dev", "qa"]}


@pytest.mark.parametrize(
    ("sign_in", "claims", "role", "why"),
    [
        (MAIL, {"email": "jo@ops.example"}, Role.OPERATOR, "as the settings say"),
        (MAIL, {"email": "jo@dev.example"}, Role.VIEWER, "as the settings say"),
        (MAIL, {"email": "jo@elsewhere.org"}, None, "signed in, and unknown here"),
        (MAIL, {"email": "jo@ops.example.evil.org"}, None, "patterns are of the whole address"),
        (MAIL, {"email": "jo@ops.example", "email_verified": False}, None, "anybody may write that into a profile"),
        (MAIL, {"sub": "1"}, None, "the claim is not there"),
        (MAIL, {"email": None}, None, "the claim is empty"),
        (GROUPS, {"groups": ["qa", "sre"]}, Role.OPERATOR, "the higher of two roles"),
        (GROUPS, {"groups": "dev"}, Role.VIEWER, "one group as a text"),
        (GROUPS, {"groups": []}, None, "in no group"),
        (GROUPS, {"groups": [{"sre": 1}, 7]}, None, "not texts"),
        ({"operators": ["jo@x.org"]}, {"email": "sam@x.org"}, Role.VIEWER, "by default all who can sign in may look"),
    ],
)
def test_with_sign_in(sign_in: dict[str, Any], claims: dict[str, Any], role: Role | None, why: str) -> None:
    assert identity.identified(config(**sign_in), claims).role is role, why


def test_an_address_that_anybody_may_write_into_a_profile_is_nobody_s_name() -> None:
    claims = {"groups": ["sre"], "email": "boss@x.org", "email_verified": False, "name": "boss@x.org", "sub": "7"}
    assert identity.identified(config(**GROUPS), claims).name == "7"


TEAMS = {
    "claim": "groups",
    "operators": ["sre"],
    "teams": [
        {"name": "orders", "members": ["orders-.*"], "groups": {"include": ["orders-.*"]}, "may_operate": True},
        {"name": "billing", "members": ["billing"], "clusters": {"include": ["prod"]}, "groups": {"include": ["bill"]}},
    ],
}


@pytest.mark.parametrize(
    ("more", "groups", "role", "sees", "acts_on"),
    [
        ({}, ["sre", "billing"], Role.OPERATOR, "orders-1 bill other", "orders-1 bill other"),
        ({}, ["orders-dev"], Role.OPERATOR, "orders-1", "orders-1"),
        ({}, ["billing"], Role.VIEWER, "bill", ""),
        ({}, ["billing", "orders-dev"], Role.OPERATOR, "orders-1 bill", "orders-1"),
        ({}, ["orders"], None, "", ""),
        ({"viewers": ["boss"]}, ["boss"], Role.VIEWER, "orders-1 bill other", ""),
        ({"viewers": ["boss"]}, ["boss", "orders-dev"], Role.OPERATOR, "orders-1 bill other", "orders-1"),
        ({"viewers": [".*"]}, ["x"], Role.VIEWER, "orders-1 bill other", ""),
    ],
)
def test_teams(more: dict[str, Any], groups: list[str], role: Role | None, sees: str, acts_on: str) -> None:
    sign_in = config(**TEAMS, **more).dashboard.sign_in
    assert sign_in is not None
    access = sign_in.access({"groups": groups})
    assert access.role is role
    known = ("orders-1", "bill", "other")
    assert [one for one in known if access.sees.shows("prod", one)] == sees.split()
    assert [one for one in known if access.acts_on.shows("prod", one)] == acts_on.split()
    assert access.sees.is_unlimited == ("other" in sees)


def test_two_teams_of_one_name_are_refused() -> None:
    team = {"name": "a", "members": ["a"]}
    with pytest.raises(ValueError, match="two teams 'a'"):
        config(teams=[team, team])


def test_the_name_is_what_people_know() -> None:
    settings = config(**MAIL)
    assert identity.identified(settings, {"email": "jo@ops.example", "sub": "1"}).name == "jo@ops.example"
    assert identity.identified(settings, {"sub": "1"}).name == "1"
    assert "(this machine)" in identity.local(settings, {}).name

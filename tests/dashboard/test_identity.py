"""Who may look and who may act: pure, in a table."""

from typing import Any

import pytest

from lagwise.config import Config, Role
from lagwise_dashboard import identity, launch


def config(host: str = "127.0.0.1", **sign_in: Any) -> Config:
    dashboard: dict[str, Any] = {"host": host}
    if sign_in:
        dashboard["sign_in"] = {"auth_file": "/etc/lagwise/auth.toml", **sign_in}
    return Config.model_validate({"dashboard": dashboard})


@pytest.mark.parametrize(
    ("host", "headers", "role", "why"),
    [
        ("127.0.0.1", {"host": "127.0.0.1:8501"}, Role.OPERATOR, "whoever sits at the machine"),
        ("127.0.0.1", {"host": "localhost:8501"}, Role.OPERATOR, "by that name, too"),
        ("::1", {"host": "[::1]:8501"}, Role.OPERATOR, "and by the other loopback"),
        ("127.0.0.1", {}, Role.OPERATOR, "a request without a name came to the address"),
        ("0.0.0.0", {"host": "127.0.0.1:8501"}, Role.VIEWER, "others reach it, and say what they like"),
        ("10.0.0.7", {"host": "10.0.0.7:8501"}, Role.VIEWER, "others reach it"),
        ("127.0.0.1", {"host": "lagwise.example"}, Role.VIEWER, "a name that a stranger's page made lead here"),
        ("127.0.0.1", {"host": "127.0.0.1.evil.example"}, Role.VIEWER, "looks like it, and is not"),
        ("127.0.0.1", {"host": "127.0.0.1:8501", "x-forwarded-for": "10.0.0.9"}, Role.VIEWER, "a proxy stands between"),
        ("127.0.0.1", {"host": "localhost", "via": "1.1 proxy"}, Role.VIEWER, "likewise"),
    ],
)
def test_without_sign_in(host: str, headers: dict[str, str], role: Role, why: str) -> None:
    assert identity.local(config(host), headers).role is role, why


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


def test_the_name_is_what_people_know() -> None:
    settings = config(**MAIL)
    assert identity.identified(settings, {"email": "jo@ops.example", "sub": "1"}).name == "jo@ops.example"
    assert identity.identified(settings, {"sub": "1"}).name == "1"
    assert "(this machine)" in identity.local(settings, {}).name


def test_streamlit_is_told_where_the_secrets_of_the_sign_in_are() -> None:
    assert "--secrets.files=/etc/lagwise/auth.toml" in launch.command(config(**MAIL))
    assert not any(word.startswith("--secrets") for word in launch.command(config()))

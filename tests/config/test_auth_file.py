"""The file behind the sign-in: what is wrong with it is said, without what is secret in it."""

from pathlib import Path

import pytest

from lagwise.config.auth_file import check_auth_file
from lagwise.platform.errors import ConfigError

SECRET = "0123456789abcdef0123456789abcdef"
PAGE = f"""[auth]
redirect_uri = "https://lagwise.example/oauth2callback"
cookie_secret = "{SECRET}"
"""
PROVIDER = """client_id = "lagwise"
client_secret = "hunter2-hunter2"
server_metadata_url = "https://sso.example/.well-known/openid-configuration"
"""


def refusal(file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        check_auth_file(file)
    message = str(caught.value)
    assert message.startswith("dashboard.sign_in.auth_file: ")
    assert str(file) in message
    assert "hunter2" not in message
    return message


@pytest.mark.parametrize("text", [PAGE + PROVIDER, PAGE + "[auth.default]\n" + PROVIDER])
def test_a_complete_file_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "auth.toml").write_text(text, encoding="utf-8")
    check_auth_file(tmp_path / "auth.toml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no section [auth]"),
        ("auth = 1", "has no section [auth]"),
        ("[other]\n" + PROVIDER, "has no section [auth]"),
        (PAGE, "needs client_id, client_secret, server_metadata_url"),
        (PAGE + PROVIDER.replace('"lagwise"', '" "'), "needs client_id,"),
        (PAGE + PROVIDER.replace('"lagwise"', "7"), "needs client_id,"),
        ("[auth]\n" + PROVIDER, "needs redirect_uri, cookie_secret"),
        (PAGE + 'default = "x"\n' + PROVIDER, "[auth.default]"),
        (PAGE.replace(SECRET, SECRET[1:]) + PROVIDER, "at least 32 random characters"),
        (PAGE + 'client_secret = "hunter2-hunter2', "is not TOML"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "auth.toml").write_text(text, encoding="utf-8")
    assert says in refusal(tmp_path / "auth.toml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "there is no file" in refusal(tmp_path / "none.toml")
    assert "cannot read" in refusal(tmp_path)
    (tmp_path / "auth.toml").write_bytes(b"\xff")
    assert "is not UTF-8 text" in refusal(tmp_path / "auth.toml")

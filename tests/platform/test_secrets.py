"""Secrets are read at the last moment and found again in whatever is about to be shown."""

from pathlib import Path

import pytest

from lagwise import secrets
from lagwise.errors import ConfigError


@pytest.fixture(autouse=True)
def _nothing_resolved_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_resolved", set())


def test_a_reference_is_resolved_from_environment_or_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_X", "hunter2")
    (tmp_path / "pw").write_text("correct horse\n", encoding="utf-8")
    assert secrets.resolve("${env:LAGWISE_SECRET_X}") == "hunter2"
    assert secrets.resolve(f"${{file:{tmp_path}/pw}}") == "correct horse"
    assert secrets.resolve("plain") == "plain"


def test_what_a_reference_names_must_exist(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for reference, says in (
        ("${env:LAGWISE_SECRET_NOWHERE}", "the environment variable LAGWISE_SECRET_NOWHERE, named by"),
        (f"${{file:{tmp_path}/none}}", "No such file"),
        (f"${{file:{tmp_path}/empty}}", "is empty"),
        (f"${{file:{tmp_path}/binary}}", "is not UTF-8 text"),
    ):
        with pytest.raises(ConfigError, match=says):
            secrets.resolve(reference)


def test_a_resolved_secret_is_blotted_out_wherever_it_turns_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "hunter2")
    monkeypatch.setenv("B", "hunter2-longer")
    monkeypatch.setenv("C", "1")
    for name in "ABC":
        secrets.resolve(f"${{env:{name}}}")
    assert secrets.redact("login with hunter2-longer, hunter2: 1 try") == "login with [redacted], [redacted]: 1 try"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:pw@host/db", "postgresql://me:[redacted]@host/db"),
        ("redis://:pw@host", "redis://:[redacted]@host"),
        ("https://u:p@ss@host/x", "https://u:[redacted]@host/x"),
        ("http://host:9092/a@b", "http://host:9092/a@b"),
        ("POST https://h/x?token=abc&n=1 failed", "POST https://h/x?token=[redacted]&n=1 failed"),
        ("sasl.password=pw;user=me", "sasl.password=[redacted];user=me"),
        ("password=${env:NAME}", "password=${env:NAME}"),
        ("the token is missing", "the token is missing"),
    ],
)
def test_redaction_by_shape(text: str, shown: str) -> None:
    assert secrets.redact(text) == shown


def test_settings_are_shown_without_secrets() -> None:
    tree: dict[str, object] = {
        "database": "postgresql://me:pw@host/db",
        "clusters": [{"librdkafka": {"sasl.password": "pw", "ssl.key.password": "${env:X}", "client.id": "me"}}],
        "spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "pw", "spark.hadoop.fs.s3a.endpoint": "http://u:pw@h"}},
        "passwords": ["pw", "pw"],
        "urls": ["http://u:pw@h"],
        "port": 1,
    }
    shown = secrets.redacted_settings(tree)
    assert "pw" not in str(shown).replace("redacted", "")
    assert shown["clusters"] == [
        {"librdkafka": {"sasl.password": "[redacted]", "ssl.key.password": "${env:X}", "client.id": "me"}}
    ]
    assert shown["port"] == 1

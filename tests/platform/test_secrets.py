"""Secrets are read at the last moment and found again in whatever is about to be shown."""

import base64
import html
import json
import re
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.platform import secrets
from lagwise.platform.errors import ConfigError
from tests.fixtures.secrets import forget_secrets


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


def test_a_resolved_secret_is_redacted_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
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
        ('required username="u" password="p w";', 'required username="u" password=[redacted];'),
        ("AccountName=a;AccountKey=abc==;EndpointSuffix=x", "AccountName=a;AccountKey=[redacted];EndpointSuffix=x"),
        ("{'sasl.password': 'pw', 'client.id': 'me'}", "{'sasl.password': '[redacted]', 'client.id': 'me'}"),
        ('{"client_secret": "a b"}', '{"client_secret": "[redacted]"}'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ("authorization: is a secret: write ${env:NAME}", "authorization: is a secret: write ${env:NAME}"),
    ],
)
def test_redaction_by_shape(text: str, shown: str) -> None:
    assert secrets.redact(text) == shown


def known(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_X", secret)
    assert secrets.resolve("${env:LAGWISE_SECRET_X}") == secret


WAYS = {
    "as it is": lambda text: text,
    "in an address": lambda text: quote(text, safe=""),
    "in a query": quote_plus,
    "in an address, small digits": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    "in JSON": lambda text: json.dumps({"key": text}),
    "as Python shows it": lambda text: repr((text,)),
    "in HTML": html.escape,
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 with a user": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "in base64 in the midst": lambda text: base64.urlsafe_b64encode(f"a{text} and more".encode()).decode(),
    "in hexadecimal digits": lambda text: text.encode().hex(),
    "in capital digits": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_found_however_it_is_written(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "m/ß=ä&r+k \"e\\d\" <s>'ecret'"
    known(monkeypatch, secret)
    written = WAYS[way](secret)
    shown = secrets.redact(f"before {written} behind")
    assert shown.startswith("before ") and shown.endswith(" behind")
    assert secrets.REDACTED in shown
    kept = shown.removeprefix("before ").removesuffix(" behind").replace(secrets.REDACTED, "")
    assert len(kept) < len(written) / 2, f"of {written} is left {kept}"
    assert not any(part in shown for part in ("ecret", "%22e%5C", "cmV0", quote("ßä"), "65637265"))


@given(st.binary(max_size=5), st.text("abcdefXYZ0189-_/+=", min_size=8, max_size=40), st.binary(max_size=5))
def test_no_part_of_base64_gives_a_secret_away(before: bytes, secret: str, behind: bytes) -> None:
    forget_secrets()
    secrets.remember(secret)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = secrets.redact(encode(before + secret.encode() + behind).decode())
        assert secrets.REDACTED in shown
        around = -(-4 * (len(before) + 1) // 3) + -(-4 * (len(behind) + 1) // 3) + 4
        assert len(shown) - len(secrets.REDACTED) <= around
    forget_secrets()


def test_a_secret_of_several_lines_is_found_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    body = base64.b64encode(bytes(range(96))).decode()
    pem = "\n".join(["-----BEGIN ENCRYPTED MESSAGE-----", body[:64], body[64:], "-----END ENCRYPTED MESSAGE-----"])
    known(monkeypatch, pem)
    assert secrets.redact(f"bad key {pem}") == "bad key [redacted]"
    assert secrets.redact(f"line 2: {body[:64]}") == "line 2: [redacted]"
    assert secrets.redact("-----BEGIN ENCRYPTED MESSAGE-----") == "-----BEGIN ENCRYPTED MESSAGE-----"


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("Bearer abc.def", "token abc.def expired", "token [redacted] expired"),
        (
            "Basic " + base64.b64encode(b"me:hunter2").decode(),
            "no login me:hunter2",
            "no login me:[redacted]",
        ),
        ("postgresql://me:hun%2Fter2@h/db", "login with hun/ter2 failed", "login with [redacted] failed"),
        ("postgresql://me:hun/ter2@h/db", "login with hun/ter2 failed on h/db", "login with [redacted] failed on h/db"),
        ("mysql://h/db?password=hunter2", "hunter2 is wrong for db", "[redacted] is wrong for db"),
    ],
)
def test_passwords_within_a_value_are_redacted_too(
    value: str, text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, value)
    assert secrets.redact(text) == shown
    forget_secrets()
    if "://" in value:
        assert secrets.resolve(value) == value
        assert secrets.redact(text) == shown, "it stands in the settings itself"


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.example/services/T0/B0/abcdEFGH01234567",
        "https://hooks.example/?key=abcdEFGH01234567&n=1",
        "https://hooks.example?k=abcdEFGH01234567",
        "https://abcdEFGH01234567@hooks.example/",
    ],
)
def test_a_token_in_an_address_is_redacted_and_its_host_is_shown(
    address: str, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_X", address)
    assert secrets.resolve_address("${env:LAGWISE_SECRET_X}" if is_named else address) == address
    assert secrets.redact("hooks.example: no abcdEFGH01234567 at all") == "hooks.example: no [redacted] at all"
    assert secrets.redact("the services of hooks.example are down") == "the services of hooks.example are down"


def test_the_host_of_a_service_may_be_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_X", "tgram://123456789:abcdEFGH01234567/-100200300400")
    secrets.resolve_address("${env:LAGWISE_SECRET_X}")
    assert secrets.redact("POST /bot123456789:abcdEFGH01234567/x") == "POST /bot[redacted]:[redacted]/x"


def test_the_host_of_a_service_that_is_an_ip_address_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_X", "json://me:hunter2@127.0.0.1:8080/abcdEFGH01234567")
    secrets.resolve_address("${env:LAGWISE_SECRET_X}")
    assert secrets.redact("127.0.0.1:8080: hunter2, abcdEFGH01234567") == "127.0.0.1:8080: [redacted], [redacted]"


def test_values_under_the_keys_of_secrets_are_redacted() -> None:
    options = {"fs.azure.account.key.me.dfs.example": "abcdEFGH", "fs.s3a.endpoint": "store.example"}
    assert secrets.resolve_map(options) == options
    assert secrets.redact("abcdEFGH at store.example") == "[redacted] at store.example"


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [
        *((key, True) for key in sorted(secrets.SECRET_KEYS)),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net", True),
        ("spark.hadoop.fs.azure.sas.fixed.token.me", True),
        ("spark.ssl.keyPassword", True),
        ("spark.kafka.sasl.jaas.config", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("aws_session_token", True),
        ("azure_storage_connection_string", True),
        ("AZURE_STORAGE_SAS_KEY", True),
        ("google_service_account_key", True),
        ("AWS_ACCESS_KEY_ID", False),
        ("aws_sse_kms_key_id", False),
        ("azure_federated_token_file", False),
        ("ssl.key.location", False),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", False),
        ("spark.hadoop.hadoop.security.credential.provider.path", False),
        ("spark.sql.shuffle.partitions", False),
        ("client.id", False),
    ],
)
def test_keys_of_secrets(key: str, is_secret: bool) -> None:
    assert secrets.is_secret_key(key) is is_secret

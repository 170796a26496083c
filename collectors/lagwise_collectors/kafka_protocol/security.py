"""How brokers are reached and signed in to: librdkafka's settings, read for our own connections.

A setting about security that is not known here is not passed over: the whole path is refused (``not_supported``), and
librdkafka alone reads the cluster.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.client import librdkafka_settings
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.token_function import TokenFunction
from lagwise_collectors.kafka_protocol import sasl

_KNOWN = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.token.endpoint.url",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
    }
)
_ABOUT_SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.")


@dataclass(frozen=True, slots=True)
class Reach:
    """How brokers are reached."""

    #: ``host:port`` each.
    bootstrap: tuple[str, ...]
    timeout_seconds: float
    tls: ssl.SSLContext | None
    #: Name of the SASL mechanism, and its exchange; None: no signing in.
    mechanism: str | None
    exchange: sasl.Mechanism | None


def reach_of(cluster: Cluster) -> Reach:
    """How the brokers of a cluster are reached.

    Raises KafkaTrouble where our own path cannot (``not_supported``) or a setting makes no sense, ConfigError where a
    secret does not exist.
    """
    settings, _ = librdkafka_settings(cluster)
    unknown = sorted(key for key in settings if key.startswith(_ABOUT_SECURITY) and key not in _KNOWN)
    if unknown:
        raise KafkaTrouble("not_supported", f"only librdkafka knows the setting {unknown[0]}")
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol not in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"):
        raise KafkaTrouble("setting_refused", f"security.protocol {protocol!r} is not known")
    mechanism = exchange = None
    if protocol.startswith("sasl"):
        mechanism = str(settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI"))).upper()
        exchange = _exchange(mechanism, settings, cluster.timeout_seconds)
    return Reach(
        bootstrap=tuple(address.strip().rpartition("://")[2] for address in cluster.bootstrap.split(",")),
        timeout_seconds=cluster.timeout_seconds,
        tls=_tls(settings) if protocol.endswith("ssl") else None,
        mechanism=mechanism,
        exchange=exchange,
    )


def _tls(settings: Mapping[str, Any]) -> ssl.SSLContext:
    text = {key: str(value) for key, value in settings.items()}
    ca = text.get("ssl.ca.location")
    try:
        context = ssl.create_default_context(cafile=ca, cadata=text.get("ssl.ca.pem"))
        if "ssl.certificate.location" in text:
            context.load_cert_chain(
                text["ssl.certificate.location"], text.get("ssl.key.location"), text.get("ssl.key.password", "")
            )
    except (OSError, ValueError) as error:  # a file that is missing, or that is no certificate or key
        raise KafkaTrouble("setting_refused", f"a certificate or key cannot be used: {error}") from None
    if text.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if text.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _exchange(mechanism: str, settings: Mapping[str, Any], timeout_seconds: float) -> sasl.Mechanism:
    user, password = str(settings.get("sasl.username", "")), str(settings.get("sasl.password", ""))
    match mechanism:
        case "PLAIN":
            return lambda: sasl.plain(user, password)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":
            return lambda: sasl.scram(f"sha{mechanism[-3:]}", user, password)
        case "OAUTHBEARER" if "oauth_cb" in settings:
            function, config = settings["oauth_cb"], str(settings.get("sasl.oauthbearer.config", ""))
            return lambda: sasl.oauthbearer(*_token_of_function(function, config))
        case "OAUTHBEARER":
            token = _token_source(settings, timeout_seconds)
            extensions = dict(_pairs(str(settings.get("sasl.oauthbearer.extensions", "")), ","))
            return lambda: sasl.oauthbearer(token(), extensions)
    raise KafkaTrouble("not_supported", f"only librdkafka has the SASL mechanism {mechanism}")


def _token_of_function(function: TokenFunction, config: str) -> tuple[str, dict[str, str]]:
    """A token by the settings' function, and its extensions: a new one for each connection, so none is ever too old."""
    try:
        token, _ends_at, *others = function(config)
        extensions = dict(others[1]) if len(others) > 1 else {}
    except Exception as error:  # it is not ours; its words may hold secrets
        raise KafkaTrouble(
            "authentication_failed", f"the function for tokens gave none: {type(error).__name__}"
        ) from error
    return str(token), extensions


def _token_source(settings: Mapping[str, Any], timeout_seconds: float) -> Callable[[], str]:
    if str(settings.get("sasl.oauthbearer.method", "default")).lower() == "oidc":
        return lambda: _issued_token(settings, timeout_seconds)
    if str(settings.get("enable.sasl.oauthbearer.unsecure.jwt", "false")).lower() != "true":
        raise KafkaTrouble(
            "not_supported", "OAUTHBEARER needs sasl.oauthbearer.method=oidc or oauth_token_function here"
        )
    claims = dict(_pairs(str(settings.get("sasl.oauthbearer.config", "")), None))
    return lambda: sasl.unsecured_token(claims)


def _issued_token(settings: Mapping[str, Any], timeout_seconds: float) -> str:
    """A token by the client's credentials (RFC 6749, 4.4): a new one for each connection, so none is ever too old."""
    scope = settings.get("sasl.oauthbearer.scope")
    try:
        answer = httpx.post(
            str(settings.get("sasl.oauthbearer.token.endpoint.url", "")),
            data={"grant_type": "client_credentials"} | ({"scope": str(scope)} if scope else {}),
            auth=(str(settings.get("sasl.oauthbearer.client.id")), str(settings.get("sasl.oauthbearer.client.secret"))),
            timeout=timeout_seconds,
        )
        answer.raise_for_status()
        token = answer.json()["access_token"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        why = f"HTTP {error.response.status_code}" if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
        raise KafkaTrouble("authentication_failed", f"the token endpoint gave no token: {why}") from None
    return str(token)


def _pairs(text: str, separator: str | None) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in text.split(separator)]
    return [(name.strip(), value.strip()) for name, _, value in parts if name.strip()]

"""SASL mechanisms: what the client says, given what the server said. No input or output here."""

import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping

from lagwise_collectors.kafka.requests.errors import KafkaTrouble

#: Yields what is sent, is sent what came back, and ends where the exchange does.
Exchange = Generator[bytes, bytes, None]
Mechanism = Callable[[], Exchange]

#: Kafka stores at most 16,384 rounds; what a server asks for beyond this would only cost our CPU.
_MOST_SCRAM_ITERATIONS = 1_000_000


def plain(user: str, password: str) -> Exchange:
    """RFC 4616."""
    yield b"\0".join((b"", user.encode(), password.encode()))


def scram(algorithm: str, user: str, password: str, nonce: str | None = None) -> Exchange:
    """RFC 5802 with ``sha256`` or ``sha512`` (RFC 7677), without channel binding, which Kafka does not have.

    Raises KafkaTrouble if the server does not know the password either.
    """
    ours = nonce or secrets.token_urlsafe(24)
    name = user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={ours}"
    said = yield f"n,,{first}".encode()
    server = _attributes(said)
    combined, iterations = server.get("r", ""), server.get("i", "")
    if not combined.startswith(ours) or len(combined) == len(ours):
        raise _refused("the server's nonce does not continue ours")
    if not re.fullmatch("[0-9]{1,9}", iterations) or not 0 < int(iterations) <= _MOST_SCRAM_ITERATIONS:
        raise _refused(f"the server asks for {iterations[:20]!r} iterations")
    try:
        salt = base64.b64decode(server.get("s", ""), validate=True)
    except ValueError:
        raise _refused("the server's salt is not base64") from None
    last = f"c=biws,r={combined}"
    signed = ",".join((first, said.decode("utf-8", "replace"), last)).encode()
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, int(iterations))
    client_key = _hmac(algorithm, salted, b"Client Key")
    signature = _hmac(algorithm, hashlib.new(algorithm, client_key).digest(), signed)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verdict = _attributes((yield f"{last},p={base64.b64encode(proof).decode()}".encode()))
    expected = _hmac(algorithm, _hmac(algorithm, salted, b"Server Key"), signed)
    if not hmac.compare_digest(verdict.get("v", "").encode(), base64.b64encode(expected)):
        raise _refused("the server did not prove that it knows the password")


def oauthbearer(token: str, extensions: Mapping[str, str]) -> Exchange:
    """RFC 7628. A server that rejects the token says why in an answer, to which the client must agree."""
    fields = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in extensions.items())]
    refusal = yield b"n,,\x01" + "".join(f"{one}\x01" for one in fields).encode() + b"\x01"
    if refusal:
        yield b"\x01"


def unsecured_token(claims: Mapping[str, str]) -> str:
    """A token that nobody signed, from ``sasl.oauthbearer.config``: for development, as librdkafka's own is."""
    now = time.time()
    names = {"principal", "principalClaimName", "scope", "scopeClaimName", "lifeSeconds"}
    if set(claims) - names or "principal" not in claims:
        raise KafkaTrouble("setting_refused", "sasl.oauthbearer.config needs principal=NAME")
    payload: dict[str, object] = {
        claims.get("principalClaimName", "sub"): claims["principal"],
        "iat": now,
        "exp": now + float(claims.get("lifeSeconds", 3600)),
    }
    if "scope" in claims:
        payload[claims.get("scopeClaimName", "scope")] = claims["scope"].split(",")
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, payload))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def _attributes(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode("utf-8", "replace").split(","))
    return {name: value for name, _, value in pairs}


def _hmac(algorithm: str, key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, algorithm).digest()


def _refused(why: str) -> KafkaTrouble:
    return KafkaTrouble("authentication_failed", f"SCRAM: {why}")

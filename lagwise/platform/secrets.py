"""Secrets are named in the settings and read at the last moment; nothing that is shown ever holds one.

Every secret that this process has read is redacted from whatever it shows, also URL-encoded, in base64 or in hex.
Passwords that it has not read are recognized by their position: in URLs, after ``password=``, in ``Authorization``.
"""

import base64
import binascii
import contextlib
import html
import json
import math
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError

#: librdkafka's settings that hold a secret (CONFIGURATION.md of librdkafka).
SECRET_KEYS = frozenset(
    {
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    }
)

_REFERENCE = re.compile(r"^\$\{(env|file):([^}]+)\}$")
#: Is in the names of settings whose values are secret, save those that :data:`_ABOUT_A_SECRET` matches.
_LOOKS_SECRET = re.compile(
    r"pas+w|secret|token|credential|passphrase|signature|connection[._-]?string|jaas|[._-]sas([._-]|$)"
    r"|(^|[._-]|access|account|api|private|shared)key([._-]|$)",
    re.IGNORECASE,
)
#: Ends the names of settings that only locate or describe a secret.
_ABOUT_A_SECRET = re.compile(r"(file|path|location|provider|enabled|type|id|ur[il])$", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):([^/\s]+)@")
#: ``password=…`` in a query string or a list of properties, quoted or not, unless a reference follows.
_ASSIGNED = re.compile(
    r"(?i)((?:password|passwd|passphrase|pwd|secret|token|signature|sig|accountkey|accesskey|apikey)=)"
    r"""(?!\$\{)(?:"([^"]+)"|'([^']+)'|([^\s&;,"']+))"""
)
#: ``'sasl.password': '…'``, as maps are shown.
_IN_A_MAP = re.compile(r"""(?i)(["'][\w.-]*(?:password|passphrase|secret|token)["']\s*:\s*)(["'])(?!\$\{)(.+?)\2""")
_HEADER = re.compile(r"(?i)(\bauthorization\b[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|digest)\s+)[^\s\"',;]+")
_CREDENTIALS = re.compile(r"(?i)(basic|bearer|digest|token|apikey)\s+(\S+)")
REDACTED = "[redacted]"

#: The secrets that this process has read.
_known: set[str] = set()
#: All encodings of these secrets, the longest first: a whole secret before a part of it.
_sought: tuple[str, ...] = ()
_remembering = threading.Lock()
#: Shorter values are not redacted: hiding every "1" would hide more than a secret.
_SHORTEST_SOUGHT = 4
#: Shorter parts of an address are names or versions, not tokens.
_SHORTEST_TOKEN = 16
#: The same in an address behind a reference: that is there because the address holds a secret.
_SHORTEST_NAMED_TOKEN = 8
#: The base64 and hex of a shorter secret would be found by chance.
_SHORTEST_ENCODED = 6
#: Shorter lines of a secret of several lines are brackets and the like.
_SHORTEST_LINE = 16


def is_reference(value: str) -> bool:
    """Whether a setting's value names a secret (``${env:NAME}``, ``${file:/path}``) instead of being one."""
    return _REFERENCE.match(value) is not None


def resolve(value: str) -> str:
    """The value itself, or what its reference points at. Raises ConfigError if that does not exist.

    From then on this process redacts what a reference pointed at, and the passwords in a value.
    """
    match = _REFERENCE.match(value)
    if match is None:
        remember(*_passwords_in(value))
        return value
    kind, name = match.groups()
    if kind == "env":
        found = os.environ.get(name)
        if not found:
            raise ConfigError(
                f"the environment variable {name}, named by {value} in the settings, is not set",
                code=ErrorCode.SECRET_UNREADABLE,
            )
    else:
        try:
            found = Path(name).expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(
                f"cannot read the file named by {value} in the settings: {error.strerror}",
                code=ErrorCode.SECRET_UNREADABLE,
            ) from error
        except UnicodeDecodeError:
            raise ConfigError(
                f"the file named by {value} in the settings is not UTF-8 text", code=ErrorCode.SECRET_UNREADABLE
            ) from None
        if not found:
            raise ConfigError(f"the file named by {value} in the settings is empty", code=ErrorCode.SECRET_UNREADABLE)
    remember(found, *_passwords_in(found))
    return found


def resolve_address(value: str) -> str:
    """Like :func:`resolve`, for an address: what looks like a token in its user, path or query is redacted, too."""
    found = resolve(value)
    scheme, _, rest = found.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) + 1 :]
    shortest = _SHORTEST_NAMED_TOKEN if is_reference(value) else _SHORTEST_TOKEN
    user, _, host = authority.rpartition("@")
    # In Apprise's URLs a token can stand in the place of the host, which otherwise has dots.
    secret = f"{user}/{path}" if scheme in ("http", "https") or "." in host else rest
    parts = re.split("[/?&#=:@,;]", secret)
    tokens = {part for part in parts if _is_token(part, shortest)}
    remember(*tokens, *(unquote(token) for token in tokens), *([path] if tokens else []))
    return found


def resolve_map(options: Mapping[str, str]) -> dict[str, str]:
    """A map of settings with its references resolved. Values under the keys of secrets are redacted from then on."""
    found = {key: resolve(value) for key, value in options.items()}
    remember(*(value for key, value in found.items() if is_secret_key(key)))
    return found


def redact(text: str) -> str:
    """Text without secrets: those that this process has read, however encoded, and passwords by their position."""
    for secret in _sought:
        if secret in text:
            text = text.replace(secret, REDACTED)
    if "@" in text:
        text = _URL_PASSWORD.sub(rf"\1:{REDACTED}@", text)
    if "=" in text:
        text = _ASSIGNED.sub(rf"\1{REDACTED}", text)
    if ":" in text:
        text = _IN_A_MAP.sub(rf"\1\2{REDACTED}\2", text)
        text = _HEADER.sub(rf"\1{REDACTED}", text)
    return text


def remember(*secrets: str) -> None:
    """Redact these from now on. For secrets that are not read by :func:`resolve`."""
    global _sought
    new = {secret for secret in secrets if len(secret) >= _SHORTEST_SOUGHT} - _known
    if new:
        written = {one for secret in new for one in _encodings(secret)}
        with _remembering:
            _known.update(new)
            # A new tuple: other threads may be iterating over the old one.
            _sought = tuple(sorted({*_sought, *written}, key=len, reverse=True))


def is_secret_key(key: str) -> bool:
    """Whether the value under this key of a map (librdkafka, Spark, an object store) is a secret."""
    return key in SECRET_KEYS or (_LOOKS_SECRET.search(key) is not None and _ABOUT_A_SECRET.search(key) is None)


def _passwords_in(value: str) -> set[str]:
    """The parts of a value that are secret by their position."""
    found = {text for match in _ASSIGNED.finditer(value) for text in match.groups()[1:] if text}
    scheme, _, rest = value.partition("://")
    # A password in a database's URL may contain a slash; in a web address a slash begins the path.
    userinfo, at, _ = (rest.partition("/")[0] if scheme in ("http", "https") else rest).rpartition("@")
    found |= {userinfo.partition(":")[2]} if at else set()
    if match := _CREDENTIALS.fullmatch(value):
        found.add(match[2])
        if match[1].lower() == "basic":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                found.add(base64.b64decode(match[2], validate=True).decode("utf-8").partition(":")[2])
    return found | {unquote(one) for one in found} | {unquote_plus(one) for one in found}


def _is_token(part: str, shortest: int) -> bool:
    """Whether a part of an address looks generated: long, and not only lower-case words."""
    return len(part) >= shortest and re.fullmatch("[a-z._-]*", part) is None


def _encodings(text: str) -> set[str]:
    """A secret, and how it may appear in what programs print: in JSON, Python, HTML, URLs, hex and base64 (also within
    a longer text).

    Of a text of several lines, each long line by itself, too.
    """
    lines = {line.strip() for line in text.splitlines()} if "\n" in text else set()
    pieces = {text} | {line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("-----")}
    return {one for piece in pieces for one in (*_quoted(piece), *_encoded(piece)) if one}


def _quoted(text: str) -> set[str]:
    in_addresses = {quote(text), quote(text, safe=""), quote_plus(text)}
    in_addresses |= {re.sub("%..", lambda found: found[0].lower(), one) for one in in_addresses}
    in_json = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return {text, repr(text)[1:-1], html.escape(text), html.escape(text, quote=False)} | in_json | in_addresses


def _encoded(text: str) -> set[str]:
    data = text.encode("utf-8", "surrogateescape")
    if len(data) < _SHORTEST_ENCODED:
        return set()
    digits = data.hex()
    return {digits, digits.upper()} | {one for before in range(3) for one in _in_base64(data, before)}


def _in_base64(data: bytes, before: int) -> set[str]:
    """The base64 characters that depend on the data alone, where ``before`` bytes (modulo 3) precede it."""
    padded = bytes(before) + data
    first, end = math.ceil(8 * before / 6), 8 * len(padded) // 6
    return {encode(padded).decode("ascii")[first:end] for encode in (base64.b64encode, base64.urlsafe_b64encode)}

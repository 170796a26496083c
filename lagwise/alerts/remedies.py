"""Where to look first: a command to copy, and a link into the dashboard. Both are safe with any name."""

import shlex
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from lagwise.alerts.model import Kind, Subject
from lagwise.config import Cluster


def shell_word(text: str) -> str:
    """Text as one word for bash or zsh. Names are strangers' input: what a terminal would act on is spelled out."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_ansi_c(character) for character in text) + "'"


def _ansi_c(character: str) -> str:
    """One character inside ``$'…'`` (bash: ANSI-C quoting)."""
    if character in "'\\":
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0x7F else f"\\{code:03o}"


def first_command(subject: Subject, clusters: Sequence[Cluster]) -> str:
    """The command that shows what is going on, ready to paste."""
    if subject.kind is not Kind.GROUP or subject.group is None:
        return "lagwise doctor"
    cluster = next((c for c in clusters if c.name == subject.cluster), None)
    words = [
        "kafka-consumer-groups",
        "--bootstrap-server",
        shell_word(cluster.bootstrap) if cluster else "HOST:PORT",
        "--describe",
        # With an equals sign, so that a name that begins with a dash is not an option.
        f"--group={shell_word(subject.group)}",
    ]
    protocol = str(cluster.librdkafka.get("security.protocol", "plaintext")) if cluster else "plaintext"
    if protocol.lower() != "plaintext":
        words += ["--command-config", "client.properties"]
    return " ".join(words)


def dashboard_link(subject: Subject, dashboard_url: str) -> str:
    """The page of the subject."""
    base = dashboard_url.rstrip("/")
    if subject.kind is not Kind.GROUP:
        return f"{base}/health"
    query = {"cluster": subject.cluster or "", "group": subject.group or ""}
    return f"{base}/group?{urlencode(query, quote_via=quote, safe='')}"

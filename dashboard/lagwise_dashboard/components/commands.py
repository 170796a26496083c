"""Commands to copy: what Kafka's own tools say about a group, and how they would repair it. Quoted for a
POSIX shell."""

import shlex
from dataclasses import dataclass

from lagwise.config import Config
from lagwise.logs import escape


@dataclass(frozen=True, slots=True)
class Command:
    """A command and what it is for."""

    purpose: str
    text: str


def for_group(config: Config, cluster: str, group: str, topic: str | None) -> list[Command]:
    """Commands about one group: all of them only look, the last one included (a dry run changes nothing)."""
    start = _start(config, cluster)
    named = _option("--group", group)
    found = [
        Command("Offsets and lag of every partition, from the brokers", f"{start} --describe {named}"),
        Command("Members and what each of them owns", f"{start} --describe --members --verbose {named}"),
        Command(
            "The same verdict in the terminal",
            f"lagwise lag {_option('--data', config.data)} {_option('--cluster', cluster)} {_argument(group)}",
        ),
    ]
    if topic is not None:
        found.append(
            Command(
                "What skipping to the newest records would do. A dry run: it changes nothing; with --execute instead "
                "it would skip every unread record, and the group must have no members",
                f"{start} {named} {_option('--topic', topic)} --reset-offsets --to-latest --dry-run",
            )
        )
    return found


def quote(value: str) -> str:
    """One word for bash and zsh. Invisible characters are written as escapes: pasted raw, a terminal would
    obey them."""
    if clean_to_paste(value):
        return shlex.quote(value)
    return "$'" + "".join(_ansi_c(character) for character in value) + "'"


def clean_to_paste(value: str) -> bool:
    """Whether nothing in it but what can be seen."""
    return escape(value) == value


def _ansi_c(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if escape(character) == character:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _start(config: Config, cluster: str) -> str:
    known = next((c for c in config.clusters if c.name == cluster), None)
    bootstrap = known.bootstrap if known else "HOST:PORT"
    words = ["kafka-consumer-groups", "--bootstrap-server", quote(bootstrap)]
    protocol = str(known.librdkafka.get("security.protocol", "plaintext")) if known else "plaintext"
    if protocol.lower() != "plaintext":
        words += ["--command-config", "client.properties"]
    return " ".join(words)


def _option(name: str, value: str) -> str:
    """``--name value``; joined by ``=`` where the value would be read as an option itself."""
    return f"{name}={quote(value)}" if value.startswith("-") else f"{name} {quote(value)}"


def _argument(value: str) -> str:
    return f"-- {quote(value)}" if value.startswith("-") else quote(value)

"""Kafka's own command-line tools: the references that Lagwise is compared with."""

import os
import re
import subprocess

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.errors import LagwiseError
from lagwise.platform.java import find_java
from lagwise_sandbox import jars

#: The jar of Kafka's own command-line tools.
KAFKA_TOOLS = jars.Artifact(jars.KAFKA, "kafka-tools", 3, transitive=False)


def run_tool(name: str, main_class: str, bootstrap: str, *arguments: str) -> str:
    """The output of one of Kafka's tools. Takes a JVM start, about two seconds.

    Raises MissingRequirement without Java or the jars, LagwiseError when the tool fails.
    """
    command = [
        str(find_java()), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", _classpath(), main_class,
        "--bootstrap-server", bootstrap, *arguments,
    ]  # fmt: skip
    try:
        ran = subprocess.run(dying_with_parent(command), capture_output=True, text=True, timeout=60.0, check=False)
    except subprocess.TimeoutExpired as error:
        raise LagwiseError(f"{name} did not answer within 60 s") from error
    # A tool exits with 0 even where it could not ask: it says so in a line of its own.
    failed = re.search(r"^Error: .*$", ran.stdout + "\n" + ran.stderr, re.MULTILINE)
    if ran.returncode != 0 or failed:
        words = failed.group() if failed else (ran.stderr.strip() or ran.stdout.strip() or "no output").splitlines()[-1]
        raise LagwiseError(f"{name} failed (exit {ran.returncode}): {words}")
    return ran.stdout


def _classpath() -> str:
    """The classpath of Kafka's own tools: the broker's and the ``kafka-tools`` jar."""
    tools = jars.resolved(KAFKA_TOOLS)
    return os.pathsep.join([*(str(jar) for jar in tools), jars.broker_classpath()])


def listed_groups(bootstrap: str) -> dict[str, tuple[str, str]]:
    """What ``kafka-groups --list`` shows: type and protocol of each group, both as it writes them."""
    output = run_tool("kafka-groups", "org.apache.kafka.tools.GroupsCommand", bootstrap, "--list")
    header, *rows = [line for line in output.split("\n") if line.strip()]
    assert header.split() == ["GROUP", "TYPE", "PROTOCOL"], output
    # Names hold spaces and the tool counts columns in UTF-16 units, so a row is read from its end.
    form = re.compile(r"(.+?) +(Classic|Consumer|Share|Streams)(?: +(\S+))? *\r?")
    found = [form.fullmatch(row) for row in rows]
    assert all(found), output
    return {match[1]: (match[2], match[3] or "") for match in found if match}


def share_group_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], tuple[int | None, int | None]]:
    """What ``kafka-share-groups --describe`` shows: start offset and lag by topic and partition; None where it shows
    ``-``."""
    main_class = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    output = run_tool("kafka-share-groups", main_class, bootstrap, "--describe", "--group", group)
    rows = [line.split() for line in output.splitlines() if line.startswith((group, "GROUP"))]
    place = {name: number for number, name in enumerate(rows[0])}

    def number(row: list[str], column: str) -> int | None:
        return None if row[place[column]] == "-" else int(row[place[column]])

    return {
        (row[place["TOPIC"]], int(row[place["PARTITION"]])): (number(row, "START-OFFSET"), number(row, "LAG"))
        for row in rows[1:]
    }

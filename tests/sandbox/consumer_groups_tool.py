"""What Kafka's own ``kafka-consumer-groups --describe`` says, as rows: the reference that Lagwise is compared with."""

import os
import re
import subprocess
from dataclasses import dataclass

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.errors import LagwiseError
from lagwise.platform.java import find_java
from lagwise_sandbox import jars

#: The jar of Kafka's own command-line tools.
KAFKA_TOOLS = jars.Artifact(jars.KAFKA, "kafka-tools", 3, transitive=False)
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
#: GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG …; ``-`` is none. Only a group's name can hold spaces.
_ROW = re.compile(
    r"^(?P<group>\S.*?)\s+(?P<topic>[A-Za-z0-9._-]+)\s+(?P<partition>\d+)"
    r"\s+(?P<current>\d+|-)\s+(?P<end>\d+|-)\s+(?P<lag>-?\d+|-)(?:\s|$)"
)


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """One group-partition as Kafka's tool shows it, in records; None where it shows ``-``."""

    group: str
    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None


def parse(output: str) -> list[DescribedPartition]:
    """The rows in the tool's output; headings and remarks are left out."""
    return [
        DescribedPartition(
            found["group"],
            found["topic"],
            int(found["partition"]),
            _number(found["current"]),
            _number(found["end"]),
            _number(found["lag"]),
        )
        for found in (_ROW.match(line) for line in output.splitlines())
        if found
    ]


def describe(bootstrap: str, *groups: str) -> list[DescribedPartition]:
    """Run Kafka's tool on some groups, or on all of them. Takes a JVM start, about two seconds.

    Raises MissingRequirement without Java or the jars, LagwiseError when the tool fails.
    """
    which = [word for group in groups for word in ("--group", group)] or ["--all-groups"]
    command = [
        str(find_java()), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", _classpath(), _TOOL,
        "--bootstrap-server", bootstrap, "--describe", *which,
    ]  # fmt: skip
    try:
        ran = subprocess.run(dying_with_parent(command), capture_output=True, text=True, timeout=60.0, check=False)
    except subprocess.TimeoutExpired as error:
        raise LagwiseError("kafka-consumer-groups did not answer within 60 s") from error
    # The tool exits with 0 even where it could not ask: it says so in a line of its own.
    failed = re.search(r"^Error: .*$", ran.stdout + "\n" + ran.stderr, re.MULTILINE)
    if ran.returncode != 0 or failed:
        words = failed.group() if failed else (ran.stderr.strip() or ran.stdout.strip() or "no output").splitlines()[-1]
        raise LagwiseError(f"kafka-consumer-groups failed (exit {ran.returncode}): {words}")
    return parse(ran.stdout)


def _classpath() -> str:
    """The classpath of Kafka's own tools: the broker's and the ``kafka-tools`` jar."""
    tools = jars.resolved(KAFKA_TOOLS)
    return os.pathsep.join([*(str(jar) for jar in tools), jars.broker_classpath()])


def _number(shown: str) -> int | None:
    return None if shown == "-" else int(shown)

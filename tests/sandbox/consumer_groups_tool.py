"""What Kafka's own ``kafka-consumer-groups --describe`` says, as rows: the reference that Lagwise is compared with."""

import re
from dataclasses import dataclass

from tests.sandbox.kafka_tools import run_tool

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
    return parse(run_tool("kafka-consumer-groups", _TOOL, bootstrap, "--describe", *which))


def _number(shown: str) -> int | None:
    return None if shown == "-" else int(shown)

"""What one sample of a large RocketMQ broker costs: 500 groups on 20 topics of 16 queues, 160,000 committed offsets.

Starts the sandbox's name server and broker, fills them, and takes samples with the product's source: from the first
request to the tables in memory. The goals, for the medians: 1 s, and 0.5 s of this process's CPU. Beside it, on the
same machine in the same minutes:

- the same as ``lagwise collect`` does it: a reader process, a pipe, the lake (CPU of both processes);
- the requests of a sample one after the other, their answers thrown away unread: what broker and sockets take alone;
- the way of ``mqadmin consumerProgress``, two requests for each group (203, 208), also one after the other and unread.

In these no member is online. At last each group gets its retry topic, and a member that owns every queue and can be
asked for it. That costs more, which is reported and not judged. Figures are of this machine in this hour.

    python -m benchmarks sample-rocketmq [--samples 21] [--small] [--json]
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.common import (
    REPOSITORY,
    cpu_seconds,
    machine,
    machine_line,
    options_parser,
    say,
    spread_cell,
    timed_runs,
)
from benchmarks.sample_kafka import measure_ours
from benchmarks.sample_rocketmq.filling import Committed, Size, fill
from benchmarks.sample_rocketmq.members import READY
from lagwise.config import RocketmqCluster
from lagwise.platform.die_with_parent import dying_with_parent
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.rocketmq.remoting import requests
from lagwise_collectors.rocketmq.remoting.connection import Connection, ConnectionSettings
from lagwise_collectors.rocketmq.remoting.errors import CONSUMER_NOT_ONLINE, RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.frames import Request
from lagwise_collectors.rocketmq.source import RocketmqSource
from lagwise_sandbox.rocketmq.servers import Rocketmq

FULL, SMALL = Size(topics=20, queues=16, groups=500), Size(topics=3, queues=4, groups=10)
GOAL_WALL_SECONDS, GOAL_CPU_SECONDS = 1.0, 0.5
_BROKER = "broker-a"
_TIMEOUT_SECONDS = 60.0
#: The sandbox's servers start fast with the simple compiler only. A broker that serves has both; without, its state
#: (request 28, for which it counts every slot of its timer wheel) takes 0.06 to 0.5 s of each sample, and 0.01 s with.
_AS_IN_PRODUCTION = {"_JAVA_OPTIONS": "-XX:TieredStopAtLevel=4"}
_WARM_UP = 5
#: Samples after which members that have just come are known.
_SETTLED_AFTER = 8
_CONSUME_STATS = 208

#: What is measured, and how it is called in the table.
WAYS = {
    "collect": "lagwise, one sample",
    "written": "… in its reader, and written",
    "unread": "same requests, one by one, unread",
    "tool": "as the tool asks, unread",
    "online": "lagwise, members in all groups",
}


def main() -> int:
    parser = options_parser(__doc__, "a thousandth of the size, to see that it works", has_json=True)
    parser.add_argument("--samples", type=int, default=21, help="samples to take (default 21)")
    arguments = parser.parse_args()
    size, samples = SMALL if arguments.small else FULL, arguments.samples
    result: dict[str, Any] = {"machine": machine(), "group_partitions": size.group_partitions, "groups": size.groups}
    say(arguments, "starting and filling a broker …")
    with Rocketmq(environment=_AS_IN_PRODUCTION) as rocketmq:
        address, broker = rocketmq.address(_BROKER), broker_process()
        began = time.monotonic()
        committed = fill(address, size)
        result["filling_seconds"] = time.monotonic() - began
        cluster = RocketmqCluster(
            system="rocketmq", name="bench", name_servers=rocketmq.name_servers, timeout_seconds=_TIMEOUT_SECONDS
        )
        say(arguments, f"{samples} samples …")
        result["collect"] = measure_collect(cluster, size, committed, samples, broker)
        del committed
        say(arguments, f"{samples} samples in a reader, written …")
        result["written"] = measure_written(cluster, samples, broker)
        say(arguments, "the same requests one after the other …")
        result["unread"] = measure_in_turn(address, requests_of_sample(size), max(3, samples // 2), broker)
        say(arguments, "as the tool asks …")
        result["tool"] = measure_in_turn(address, requests_of_tool(size), max(3, samples // 10), broker)
        say(arguments, "with members …")
        with members(address, size):
            result["online"] = measure_online(cluster, size, samples, broker)
    result["machine"]["load_after"] = os.getloadavg()[0]
    costs = result["collect"]
    result["goals_met"] = (
        costs["wall_seconds"]["median"] < GOAL_WALL_SECONDS and costs["cpu_seconds"]["median"] < GOAL_CPU_SECONDS
    )
    print(json.dumps(result, indent=2) if arguments.json else table(result))
    return int(not result["goals_met"])


def broker_process() -> psutil.Process:
    """The broker among this process's children."""
    children = psutil.Process().children(recursive=True)
    return next(child for child in children if any("BrokerStartup" in word for word in child.cmdline()))


def measure_collect(
    cluster: RocketmqCluster, size: Size, committed: Committed, samples: int, broker: psutil.Process
) -> dict[str, Any]:
    """Samples by the source in this process, each of which must hold everything and no error."""
    with (
        tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder,
        contextlib.closing(RocketmqSource(cluster, state=Path(folder) / "broker-numbers")) as source,
    ):
        until_served(source)
        check(source.collect(), size, committed)

        def one() -> None:
            snapshot = source.collect()
            assert not snapshot.header["errors"], snapshot.header["errors"]
            assert snapshot.tables["commits"].num_rows == size.group_partitions

        return measure(one, samples, broker)


def until_served(source: RocketmqSource) -> None:
    """A broker that has just started cannot report its state, and fails at it."""
    deadline = time.monotonic() + 60
    while errors := source.collect().header["errors"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"the broker does not serve: {errors}")
        time.sleep(0.5)


def check(snapshot: Snapshot, size: Size, committed: Committed) -> None:
    """Raises SystemExit where a sample does not hold what was committed and where the queues end."""
    rows = snapshot.tables["commits"].select(["group", "topic", "partition", "committed"]).to_pylist()
    seen = {(row["group"], row["topic"], row["partition"]): row["committed"] for row in rows}
    ends = snapshot.tables["watermarks"].column("high_watermark").to_pylist()
    if seen != committed or ends != [size.messages_per_queue] * size.topics * size.queues:
        raise SystemExit("the sample does not hold what was committed and written")


@contextlib.contextmanager
def members(address: str, size: Size) -> Iterator[None]:
    """A member in each group for as long as this lasts, in a process of its own."""
    counts = [str(count) for count in (size.topics, size.queues, size.groups)]
    command = dying_with_parent([sys.executable, "-m", "benchmarks.sample_rocketmq.members", address, *counts])
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != READY:
                raise SystemExit("the members could not be registered")
            yield
        finally:
            process.kill()


def measure_online(cluster: RocketmqCluster, size: Size, samples: int, broker: psutil.Process) -> dict[str, Any]:
    """Samples one right after the other by a clock that says they are 15 s apart, which is how often members are asked:
    in a minute each of them once, after the minute and a half in which a member that has just come is asked more often.
    """
    now = 0.0
    with contextlib.closing(RocketmqSource(cluster, monotonic=lambda: now)) as source:

        def one() -> None:
            nonlocal now
            now += cluster.interval_seconds
            snapshot = source.collect()
            assert not snapshot.header["errors"], snapshot.header["errors"]
            seen = {name: snapshot.tables[name].num_rows for name in ("members", "commits")}
            assert seen == {"members": size.groups, "commits": size.group_partitions + size.groups}, seen

        return measure(one, samples, broker, warm_up=_SETTLED_AFTER)


def measure_written(cluster: RocketmqCluster, samples: int, broker: psutil.Process) -> dict[str, Any]:
    """Samples the way ``lagwise collect`` takes them, into a lake."""
    before = cpu_seconds(broker)
    found = measure_ours(cluster, samples)
    return {**found, "broker_cpu_seconds": (cpu_seconds(broker) - before) / (samples + 1)}


def requests_of_sample(size: Size) -> list[Request]:
    """What every sample asks of the broker."""
    return [
        requests.TOPIC_CONFIGS,
        requests.GROUP_CONFIGS,
        *map(requests.group_connections, size.group_names),
        requests.CONSUMER_OFFSETS,
        *map(requests.topic_stats, size.topic_names),
        requests.BROKER_RUNTIME,
    ]


def requests_of_tool(size: Size) -> list[Request]:
    """What ``mqadmin consumerProgress`` asks of the broker about each group: who is in it, and how far it is."""
    return [
        request
        for group in size.group_names
        for request in (
            Request(_CONSUME_STATS, f"progress of group {group}", {"consumerGroup": group}),
            requests.group_connections(group),
        )
    ]


def measure_in_turn(address: str, asked: Sequence[Request], times: int, broker: psutil.Process) -> dict[str, Any]:
    """Each request after the answer to the one before; the bodies are not read."""
    with contextlib.closing(Connection(address, ConnectionSettings(_TIMEOUT_SECONDS))) as connection:
        lengths = []

        def one() -> None:
            length = 0
            for request in asked:
                (answer,) = connection.ask_all([request])
                if not isinstance(answer, RocketmqTrouble):
                    length += len(answer.body)
                elif answer.response_code != CONSUMER_NOT_ONLINE:
                    raise SystemExit(str(answer))
            lengths.append(length)

        found = measure(one, times, broker)
    return {**found, "requests": len(asked), "bytes": lengths[-1]}


def measure(work: Callable[[], None], times: int, broker: psutil.Process, *, warm_up: int = _WARM_UP) -> dict[str, Any]:
    """Wall and CPU seconds of the work in this process, and the broker's CPU for it, after some to warm up."""
    for _ in range(warm_up):
        work()
    before = cpu_seconds(broker)
    costs = timed_runs(work, times)
    return {**costs, "broker_cpu_seconds": (cpu_seconds(broker) - before) / times}


def table(result: dict[str, Any]) -> str:
    lines = [
        machine_line(result["machine"]),
        f"{result['groups']} groups, {result['group_partitions']:,} group-partitions",
        f"  {'':34}{'wall s (min / median / max)':>30}{'CPU s (min / median / max)':>30}{'broker, CPU s':>16}",
    ]
    for way, name in WAYS.items():
        costs = result[way]
        cells = [spread_cell(costs[kind]) for kind in ("wall_seconds", "cpu_seconds")]
        lines.append(f"  {name:34}{cells[0]:>30}{cells[1]:>30}{costs['broker_cpu_seconds']:>16.2f}")
    ours = result["collect"]["wall_seconds"]["median"]
    for way in ("unread", "tool"):
        costs = result[way]
        lines.append(
            f"  {WAYS[way]}: {costs['requests']:,} requests, {costs['bytes'] / 1e6:.1f} MB, "
            f"{costs['wall_seconds']['median'] / ours:.1f} × lagwise's wall"
        )
    lines.append(
        f"  goals of {GOAL_WALL_SECONDS:g} s and {GOAL_CPU_SECONDS:g} s of CPU for a sample without members: "
        f"{'met' if result['goals_met'] else 'MISSED'}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())

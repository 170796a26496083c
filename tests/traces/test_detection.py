"""How soon a dead consumer is `stopped` and a hanging one `stalled`: within 90 s, sampled every 15 s, where there is
something to read at every sample.

On worlds of one group, wherever the moment falls between two samples and two commits; and on every
trace in which it happens.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from lagwise.traces.trace import Trace, read_trace
from tests.traces.judged import judged
from tests.traces.make import leave, pairs, steps
from tests.traces.replayed import replayed
from tests.traces.world import World

pytestmark = pytest.mark.thorough

WITHIN_S = 90.0
BEGINS_S = 600
#: How long a coordinator waits for the heartbeat of a member that died without a word (Kafka's default).
SESSION_S = 45


def seen_after(trace: Trace, status: str, since_s: float) -> float | None:
    """Seconds from a moment to the first sample at which the group has this status; None if not within five minutes."""
    samples = [n for n, at in enumerate(trace.sample_times) if since_s <= at <= since_s + 300]
    for at, evaluation in judged(trace, samples):
        if any(verdict.status == status for verdict in evaluation.groups.values()):
            return at - since_s
    return None


def world(kind: str, moment_s: int, commit_every_s: int, rate: float) -> World:
    """A group that keeps pace for ten minutes and then hangs, leaves or dies."""
    w = World("detection", "A group in trouble.", minutes=16)
    w.topic("orders", partitions=2, rate=rate)
    group = w.group("billing", {"billing-1": pairs("orders", 2)}, commit_every_s=commit_every_s)
    for pair in pairs("orders", 2):
        group.speed[pair] = steps((0, 1000), (moment_s, 0))
    if kind != "hangs":
        w.at(moment_s + (SESSION_S if kind == "dies" else 0), leave(group))
    w.run()
    return w


@pytest.mark.parametrize("rate", [0.5, 200.0])
@pytest.mark.parametrize("commit_every_s", [1, 5, 15])
@pytest.mark.parametrize(
    ("kind", "status"),
    [("leaves", "stopped"), ("dies", "stopped"), ("hangs", "stalled")],
    ids=lambda word: str(word),
)
def test_wherever_it_falls_between_two_samples(
    kind: str, status: str, commit_every_s: int, rate: float, tmp_path: Path
) -> None:
    delays = {
        phase: seen_after(
            read_trace(world(kind, BEGINS_S + phase, commit_every_s, rate).write(tmp_path)), status, BEGINS_S + phase
        )
        for phase in range(0, 15, 2)
    }
    assert {phase: delay for phase, delay in delays.items() if delay is None or delay > WITHIN_S} == {}


@pytest.mark.parametrize("retention_ms", [600_000, 604_800_000, -1], ids=["limit", "limit far off", "no limit"])
def test_a_loss_wherever_it_falls_in_the_minute(retention_ms: int, tmp_path: Path) -> None:
    """Records that a consumer that hangs has not read are deleted: because they are old, or by somebody's request."""
    delays = {}
    for phase in range(0, 60, 7):
        w = World("loss", "A group that hangs loses what it has not read.", minutes=16)
        topic = w.topic("orders", rate=20, retention_ms=retention_ms)
        group = w.group("billing", {"billing-1": pairs("orders", 1)}, commit_every_s=5)
        group.speed["orders", 0] = steps((0, 1000), (120, 0))
        # By the second 800, what was written by 180 is older than ten minutes.
        w.at(800 + phase, partial(topic.start.__setitem__, 0, 20 * 180))
        w.run()
        delays[phase] = seen_after(read_trace(w.write(tmp_path)), "losing_data", 800 + phase)
    assert {phase: delay for phase, delay in delays.items() if delay is None or delay > WITHIN_S} == {}


class Trouble(NamedTuple):
    """A group that stops or stalls in a trace: from when on that can be seen, which word must hold for it, and within
    how many seconds."""

    trace: str
    group: str
    since_s: float
    status: str
    within_s: float = WITHIN_S


#: Every group of the traces that stops or hangs. Where a loss is near, that is shown and the word is one of the
#: reasons; the collector of one trace comes back only at 1,500 s, and a transaction hangs once it is 16 min old. Who
#: commits rarely has three of its usual pauses from its last commit on; where samples are 30 s apart, three of them and
#: the first take longer too.
TROUBLES = (
    Trouble("clock-jump", "mailer", 601, "stopped"),
    Trouble("collector-gap", "mailer", 1500, "stopped"),
    Trouble("commit-markers", "auditor", 2043, "stalled"),
    Trouble("compaction", "price-audit", 901, "stopped"),
    Trouble("ghost-topic", "old-report", 600, "stopped"),
    Trouble("hanging-transaction", "clearing", 1563, "stalled"),
    Trouble("hanging-transaction", "report", 1563, "stopped"),
    Trouble("leader-change", "mailer", 601, "stopped"),
    Trouble("periodic-jobs", "every-20-minutes", 16_890, "stopped", within_s=3 * 1140 + 120),
    Trouble("periodic-jobs", "steady", 21_600, "stopped", within_s=120),
    Trouble("poison-pill", "thumbnailer", 600, "stalled"),
    Trouble("rare-commits", "connect-50", 30_000, "stalled", within_s=3 * 3000 + 300),
    Trouble("retention-by-size", "aggregator", 900, "stalled"),
    # Samples are 60 s apart: three of them, and a standstill of 60 s.
    Trouble("retention-large-segments", "backfill", 3600, "stalled", within_s=240),
    Trouble("retention-overrun", "reporter", 600, "stopped"),
    Trouble("skip-to-end", "ticker", 600, "stalled"),
    Trouble("stopped-with-a-zero", "mailer", 600, "stopped"),
    Trouble("streams-purge", "auditor", 900, "stalled"),
)


def test_in_every_trace_in_which_it_happens() -> None:
    late = {}
    for trouble in TROUBLES:
        held: set[float] = {
            one.time_s
            for one in replayed()[trouble.trace]
            if one.group == trouble.group and one.time_s >= trouble.since_s and trouble.status in one.reasons
        }
        delay = min(held) - trouble.since_s
        if delay > trouble.within_s:
            late[trouble] = delay
    assert late == {}


def test_no_trace_in_which_it_happens_is_forgotten() -> None:
    here = Path(__file__).parent
    said = {
        (path.parent.name, truth.group)
        for path in here.glob("*/trace.toml")
        for truth in read_trace(path.parent).truth
        if {str(status) for status, _ in truth.allowed} <= {"stopped", "stalled"}
    }
    assert said <= {(trouble.trace, trouble.group) for trouble in TROUBLES}

"""Outages of groups in a made-up world, judged as the analysis judges them, and what is told of them."""

from pathlib import Path

from lagwise.domain.vocabulary import UnknownReason
from lagwise.traces.trace import read_trace
from tests.alerts.support import Player, book, freshness, group_condition, observation
from tests.traces.judged import judged
from tests.traces.make import pairs, steps
from tests.traces.world import World

HANGS_AT_S, READS_AGAIN_AT_S, HANGS_AGAIN_AT_S = 600.0, 1200.0, 2400.0
UNTIL_STALLED_S = 60.0
OUTAGES = steps((0, 500), (HANGS_AT_S, 0), (READS_AGAIN_AT_S, 500), (HANGS_AGAIN_AT_S, 0))


def notified_for(world: World, group: str, folder: Path) -> tuple[list[tuple[float, str, str | None]], set[str]]:
    """The notifications (when, what, with which status), and what the group was before the first outage."""
    world.run()
    trace = read_trace(world.write(folder))
    player, notified, healthy = Player(book()), [], set()
    before, since = None, 0.0
    for now, evaluation in judged(trace):
        verdict = evaluation.groups[group]
        reason = verdict.reason.value if verdict.reason else None
        if (verdict.status, reason) != before:
            before, since = (verdict.status, reason), now
        if 60 <= now < HANGS_AT_S:
            healthy.add(reason or verdict.status.value)
        condition = group_condition(
            now,
            verdict.status.value,
            group=group,
            since=since,
            reason=reason,
            numbers=verdict.numbers,
        )
        seen = observation(condition, freshness(now, now), judged_until=now)
        notified += [(now, n.event.value, n.status) for n in player.see(now, seen)]
    return notified, healthy


def test_a_second_outage_is_notified_for_a_group_that_is_never_wholly_known(tmp_path: Path) -> None:
    """It owns partitions with old records to which nobody ever committed, as clients built on librdkafka leave them:
    the group is unknown whenever it is well."""
    world = World("never-wholly-known", "", minutes=50)
    world.topic("old", partitions=4, rate=0, records=1000)
    world.topic("busy", partitions=2, rate=50)
    group = world.group("g", {"m-1": pairs("old", 4) + pairs("busy", 2)}, speed=500)
    for pair in pairs("old", 4):
        group.committed[pair] = None
        group.position.pop(pair)
    for pair in pairs("busy", 2):
        group.speed[pair] = OUTAGES

    notified, healthy = notified_for(world, "g", tmp_path)

    assert healthy == {UnknownReason.NO_COMMIT.value}
    assert [(event, status) for _, event, status in notified] == [
        ("firing", "stalled"),
        ("resolved", "unknown"),
        ("firing", "stalled"),
    ]
    first, over, second = (at for at, _, _ in notified)
    assert 0 <= first - HANGS_AT_S <= UNTIL_STALLED_S + 30
    assert READS_AGAIN_AT_S < over < HANGS_AGAIN_AT_S
    assert 0 <= second - HANGS_AGAIN_AT_S <= UNTIL_STALLED_S + 30


def test_a_second_outage_is_notified_for_a_group_one_of_whose_topics_was_deleted(tmp_path: Path) -> None:
    """The deletion takes the commits along, so the group is unknown for good: its offsets have expired."""
    world = World("topic-deleted", "", minutes=50)
    world.topic("t", partitions=2, rate=50)
    gone = world.topic("gone", partitions=2, rate=50)
    group = world.group("g", {"m-1": pairs("t", 2) + pairs("gone", 2)}, speed=500)
    for pair in pairs("t", 2):
        group.speed[pair] = OUTAGES

    def delete() -> None:
        gone.exists = False
        group.members = {"m-1": pairs("t", 2)}
        for pair in pairs("gone", 2):
            group.committed.pop(pair)
            group.position.pop(pair)

    world.at(300, delete)

    notified, healthy = notified_for(world, "g", tmp_path)

    assert UnknownReason.EXPIRED.value in healthy
    assert [event for _, event, _ in notified] == ["firing", "resolved", "firing"]
    assert 0 <= notified[2][0] - HANGS_AGAIN_AT_S <= UNTIL_STALLED_S + 30

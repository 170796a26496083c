"""A lake whose lists are all longer than a page: partitions, groups, topics, members, events, losses, ended alerts."""

from datetime import datetime, timedelta
from pathlib import Path

from lagwise.domain.vocabulary import Status
from lagwise.tables.store import Lake
from tests.dashboard import alerts, lakes
from tests.dashboard.lakes import Scene
from tests.dashboard.stories import Story

#: Partitions of the wide group that are stalled.
STALLED = 700
#: Groups of one partition each; members and rebalances of the crowded group.
MANY = 600
WIDE, CROWDED = "wide-reader", "crowded-reader"


def write_to(folder: Path, now: datetime, *, partitions: int, promised: timedelta = lakes.INTERVAL) -> Lake:
    """The lake and the database of a data folder; ``partitions`` are those of the wide group."""
    stories = (
        Story(
            WIDE, Status.STALLED, "frozen", f"{STALLED} partitions stand still.", topic="wide", partitions=partitions,
            members=4, hit=STALLED, worst_partition=42, lag=900_000, lag_seconds=600.0, rate=5_000.0,
        ),
        Story(
            CROWDED, Status.LAGGING, "flat", "It lags.", topic="crowded", partitions=MANY, members=MANY,
            lag=60_000, lag_seconds=400.0, rebalances_seconds_ago=tuple(10.0 + 5 * i for i in range(MANY)),
        ),
        *(
            Story(
                f"group-{i:03d}", Status.CATCHING_UP, "shrinks", "It catches up.", topic=f"topic-{i:03d}", partitions=1,
                members=1, lag=10_000 + i, lag_seconds=60.0 + i, seconds_to_loss=90_000.0 - i,
            )
            for i in range(MANY)
        ),
    )  # fmt: skip
    # A minute of history is enough: it is the present that is listed.
    lake = lakes.write_to(folder, Scene(now, stories=stories, hours=0.02, promised=promised))
    alerts.write_to(folder, now, stories)
    return lake

"""Between which numbers lies what was lost. A step is where the group was and where the log began, at two samples."""

import random

import pytest

from lagwise.domain.loss.records import (
    NOTHING_LOST,
    Lost,
    LostInStep,
    lost_in_step,
    lost_together,
    of_partitions,
    of_stretches,
)


@pytest.mark.parametrize(
    ("why", "before", "now", "at_least", "at_most"),
    [
        ("the first sample shows what is missing", None, (100, 130), 30, 30),
        ("the first sample shows that nothing is", None, (130, 100), 0, 0),
        ("it is far ahead of the log start", (900, 100), (950, 200), 0, 0),
        ("it stands, and is overtaken", (100, 50), (100, 130), 30, 30),
        ("it stands, and goes on losing: only what is new counts", (100, 130), (100, 150), 20, 20),
        ("it stands below a log that stands: that was counted", (100, 130), (100, 130), 0, 0),
        ("it read ten, and was overtaken before or after", (100, 50), (110, 130), 20, 30),
        ("it was overtaken and went on with the oldest, or read all in time", (100, 50), (140, 130), 0, 30),
        ("it was below the log, went on with the oldest, and is overtaken again", (100, 130), (135, 150), 15, 20),
        ("it read what was left and lost nothing that counts", (100, 130), (160, 130), 0, 0),
        ("it was set back below the log start: what is missing is told anew", (200, 130), (100, 130), 30, 30),
        ("the log was cut off and begins earlier", (200, 130), (20, 0), 0, 0),
    ],
)
def test_a_step(why: str, before: tuple[int, int] | None, now: tuple[int, int], at_least: int, at_most: int) -> None:
    assert lost_in_step(*now, *(before or (None, None))) == LostInStep(at_least, at_most), why


def test_what_was_really_lost_lies_between() -> None:
    """Readers at the edge of what is kept, sampled now and then, with the truth counted record by record."""
    chance = random.Random(7)
    lossy, differ = 0, 0
    for _ in range(200):
        position, start, high, truly = 0, 0, 1000, 0
        steps, before = [], (None, None)
        speed, interval = chance.random() * 40, 1 + int(chance.random() * 20)
        for second in range(301):
            high += 20
            # A reader that finds its records deleted goes on with the oldest there is.
            truly += max(0, start - position)
            position = min(high, max(position, start) + int(speed * 2 * chance.random()))
            if chance.random() < 0.05:
                start = max(start, high - 500)
            if second % interval == 0 or second == 300:
                # The commit is read right before the log start, and nothing is read between the two.
                steps.append((float(300 - second), lost_in_step(position, start, *before)))
                before = position, start
        truly += max(0, start - position)
        lost = lost_together(steps)
        if lost.at_least:
            assert lost.at_least <= truly <= lost.at_most
        lossy += lost.at_least > 0
        differ += lost.at_least < lost.at_most
    assert min(lossy, differ) >= 20


def test_where_nothing_proves_a_loss_there_was_none() -> None:
    assert lost_together([(30.0, LostInStep(0, 500)), (15.0, LostInStep(0, 10))]) == NOTHING_LOST


def test_steps_and_partitions_add_up() -> None:
    one = lost_together([(45.0, LostInStep(3, 5)), (30.0, LostInStep(0, 2)), (15.0, LostInStep(1, 1))])
    assert one == Lost(4, 8, 45.0, 15.0)
    assert of_partitions([one, NOTHING_LOST, Lost(10, 10, 60.0, 20.0)]) == Lost(14, 18, 60.0, 15.0)


def test_a_stretch_in_which_no_loss_shows_adds_nothing() -> None:
    shows = [(900.0, LostInStep(3, 5)), (885.0, LostInStep(0, 2))]
    reads_on_at_the_edge = [(30.0, LostInStep(0, 400)), (15.0, LostInStep(0, 300))]
    assert of_stretches([shows, reads_on_at_the_edge]) == lost_together(shows)
    again = [(5.0, LostInStep(1, 1)), *reads_on_at_the_edge]
    assert of_stretches([shows, again]) == Lost(4, 708, 900.0, 5.0)

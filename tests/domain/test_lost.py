"""Between which numbers lies what was lost. A step is where the group was and where the log began, at two samples."""

import random

import numpy as np

from lagwise.domain.loss.records import NOTHING_LOST, Lost, of_partitions
from lagwise.domain.verdicts.samples import steps_of
from tests.domain.observed import GAP, Sample, Watched, known, paces

# the sample before, the sample → at least, at most
STEPS = (
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
)


def at(second: float, position: int, log_start: int) -> Sample:
    """Of a group that has always something unread."""
    return Sample(second, position, 10_000, log_start)


def test_a_step() -> None:
    samples = [[at(15.0 * n, *one) for n, one in enumerate(step) if one is not None] for _, *step, _, _ in STEPS]
    rows = known(samples)
    last = np.append(rows["pair"][1:] != rows["pair"][:-1], True)
    found = steps_of(rows, np.full(len(last), GAP))
    lost = zip(found["lost_at_least"][last].tolist(), found["lost_at_most"][last].tolist(), strict=True)
    assert dict(zip([why for why, *_ in STEPS], lost, strict=True)) == {why: tuple(its) for why, _, _, *its in STEPS}


def losses(*cases: list[Sample], as_of: float) -> list[Lost]:
    found = paces([Watched(samples, as_of) for samples in cases])
    ages = [[None if seen is None else as_of - seen for seen in (f.first_lost_at, f.last_lost_at)] for f in found]
    return [Lost(f.lost_at_least, f.lost_at_most, *its) for f, its in zip(found, ages, strict=True)]


def test_what_was_really_lost_lies_between() -> None:
    """Readers at the edge of what is kept, sampled now and then, with the truth counted record by record."""
    chance = random.Random(7)
    readers, truths = [], []
    for _ in range(200):
        position, start, high, truly = 0, 0, 1000, 0
        samples: list[Sample] = []
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
                samples.append(Sample(float(second), position, high, start))
        readers.append(samples)
        truths.append(truly + max(0, start - position))
    # At this moment all samples are in one stretch: of a quarter of an hour, and not of the last five minutes.
    lost = losses(*readers, as_of=899.0)
    assert all(one.at_least <= truly <= one.at_most for one, truly in zip(lost, truths, strict=True) if one.at_least)
    assert sum(one.at_least > 0 for one in lost) >= 20
    assert sum(0 < one.at_least < one.at_most for one in lost) >= 20


#: Overtaken by three, then in step with the log start, then by one; two more may have been lost each time.
SHOWS = [at(0.0, 100, 50), at(15.0, 102, 105), at(30.0, 110, 107), at(45.0, 112, 113)]


def test_where_nothing_proves_a_loss_there_was_none() -> None:
    assert losses([at(0.0, 100, 50), at(15.0, 700, 600), at(30.0, 720, 710)], as_of=60.0) == [NOTHING_LOST]


def test_steps_and_partitions_add_up() -> None:
    (one,) = losses(SHOWS, as_of=60.0)
    assert one == Lost(3 + 0 + 1, 5 + 2 + 3, 45.0, 15.0)
    assert of_partitions([one, NOTHING_LOST, Lost(10, 10, 60.0, 20.0)]) == Lost(14, 20, 60.0, 15.0)


def test_a_stretch_in_which_no_loss_shows_adds_nothing() -> None:
    reads_on_at_the_edge = [at(900.0, 500, 300), at(915.0, 900, 800), at(930.0, 1200, 1100)]
    again = [*reads_on_at_the_edge, at(945.0, 1200, 1201)]
    alone, quiet, lossy = losses(SHOWS, [*SHOWS, *reads_on_at_the_edge], [*SHOWS, *again], as_of=960.0)
    assert quiet == alone == Lost(4, 10, 945.0, 915.0)
    # From 113 to 300, from 500 to 800 and from 900 to 1,100 may have been lost, and one record was.
    assert lossy == Lost(5, 10 + 187 + 300 + 200 + 1, 945.0, 15.0)

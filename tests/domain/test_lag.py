"""What is unread and what is lost. Each row says why its numbers are right."""

from dataclasses import replace

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array
from lagwise.domain.verdicts.samples import lag_of
from tests.domain.judged_evidence import judged
from tests.domain.test_status import BEHIND, POLICY

# committed, log start, high watermark, last stable offset → lag, lost
ROWS = (
    (1, "nothing unread", 100, 0, 100, None, 0, 0),
    (2, "forty unread", 60, 0, 100, None, 40, 0),
    (3, "an empty topic", 0, 0, 0, None, 0, 0),
    (4, "what was deleted is loss and not lag", 10, 70, 100, None, 30, 60),
    (5, "all of it was deleted", 10, 100, 100, None, 0, 90),
    (6, "the log start at the commit: nothing lost", 70, 70, 100, None, 30, 0),
    (7, "an open transaction hides 30 from readers of committed records", 60, 0, 100, 70, 10, 0),
    (8, "read up to the open transaction", 70, 0, 100, 70, 0, 0),
    (9, "it has read beyond the open transaction, so it reads uncommitted records", 71, 0, 100, 70, 29, 0),
    (10, "no open transaction: the last stable offset is the high watermark", 60, 0, 100, 100, 40, 0),
    (11, "last stable offset read before a truncation", 60, 0, 100, 120, 40, 0),
    (12, "everything before the open transaction was deleted", 10, 80, 100, 70, 0, 70),
    (13, "beyond 32 bits", 5_000_000_000, 0, 12_000_000_000, None, 7_000_000_000, 0),
)


def test_lag_and_loss() -> None:
    names = ("committed", "log_start", "high_watermark", "last_stable")
    found = judged([(replace(BEHIND, **dict(zip(names, row[2:6], strict=True))), POLICY) for row in ROWS])
    said = [(one.lag, one.records_lost) for one in found]
    assert dict(zip([row[:2] for row in ROWS], said, strict=True)) == {row[:2]: row[6:] for row in ROWS}


def offsets(*, most: int) -> tuple[dict[str, Array], Array]:
    """A hundred thousand samples with any offsets at all, every other one without a last stable offset, and the lag of
    each."""
    chance = np.random.default_rng(1)
    names = ("committed", "next_record", "log_start", "high_watermark", "last_stable")
    rows = {name: chance.integers(0, most + 1, 100_000) for name in names}
    rows["next_record"][:] = NULL
    rows["last_stable"][::2] = NULL
    return rows, lag_of(rows)


def test_never_negative_and_never_more_than_there_is() -> None:
    for most in (3, 100, 2**62):
        rows, lag = offsets(most=most)
        assert ((lag == NULL) == (rows["committed"] > rows["high_watermark"])).all()
        assert (lag[lag != NULL] >= 0).all()
        assert (lag <= np.maximum(0, rows["high_watermark"] - rows["log_start"])).all()


def test_unread_and_lost_are_what_lies_between_commit_and_end() -> None:
    rows, lag = offsets(most=2**62)
    end, begin = rows["high_watermark"], np.maximum(rows["committed"], rows["log_start"])
    whole = (begin <= end) & (rows["last_stable"] == NULL)
    lost = np.maximum(rows["log_start"] - rows["committed"], 0)
    assert whole.sum() > 10_000
    assert (lag + lost == end - rows["committed"])[whole].all()
    assert (begin + lag == end)[whole].all()

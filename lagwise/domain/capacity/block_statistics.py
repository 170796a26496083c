"""Statistics of blocks of throughput, in order of time: their mean rate with its error, and when it changed."""

import math
from collections.abc import Sequence
from itertools import pairwise

from lagwise.domain.capacity.saturation import Block

#: Two-sided 95 % quantiles of Student's t for 1, 2, … 30 degrees of freedom, then the normal one.
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 1.960,
)  # fmt: skip

#: Blocks farther apart than this belong to different episodes.
EPISODE_GAP_SECONDS = 300.0
#: A change has at least so many blocks before it, and two after it.
LEAST_BLOCKS_BEFORE = 3
#: Capacity has changed where blocks before and after a moment differ by so many standard errors (many moments are
#: tried, and blocks are correlated) and by this share.
CHANGE_ERRORS = 5.0
CHANGE_SHARE = 0.1
#: Correlation of successive blocks is taken for no more than this: with few blocks it is hardly known.
MOST_CORRELATION = 0.8


def newest_of(blocks: Sequence[Block]) -> tuple[Sequence[Block], Sequence[Block]]:
    """The blocks since the rate last changed, and those between that change and the one before it."""
    levels = levels_of(blocks)
    return levels[-1], levels[-2] if len(levels) > 1 else ()


def levels_of(blocks: Sequence[Block]) -> list[Sequence[Block]]:
    """The blocks cut where their rate changed, in order of time: binary segmentation (A. J. Scott and M. Knott, *A
    Cluster Analysis Method for Grouping Means in the Analysis of Variance*, 1974)."""
    cut = _change(blocks)
    return [blocks] if cut is None else [*levels_of(blocks[:cut]), *levels_of(blocks[cut:])]


def _change(blocks: Sequence[Block]) -> int | None:
    """Where blocks before and after differ most, if that is more than chance: the index of the first one after."""
    n = len(blocks)
    # Sums from both ends, so that all cuts together cost no more than two passes. (Neither side is the total without
    # the other: a difference of sums may come to nothing next to a very long block.)
    lefts, rights = _sums(blocks), _sums(blocks[::-1])[::-1]
    total_seconds = lefts[-1][0]
    best, found = CHANGE_ERRORS, None
    for cut in range(LEAST_BLOCKS_BEFORE, n - 1):
        left, right = lefts[cut], rights[cut]
        a, b = left[1] / left[0], right[1] / right[0]
        if abs(a - b) <= CHANGE_SHARE * max(a, b):
            continue
        # One scatter for both sides: two blocks alone may be alike by chance.
        within = max(0.0, left[2] - left[0] * a * a) + max(0.0, right[2] - right[0] * b * b)
        variance = max(within / total_seconds, (0.01 * max(a, b)) ** 2)
        # Blocks of very different lengths are not alike in how well their rates are known.
        by_length = within / (n - 2) * (1 / left[0] + 1 / right[0])
        errors = abs(a - b) / math.sqrt(max(variance * (1 / cut + 1 / (n - cut)), by_length))
        if errors > best:
            best, found = errors, cut
    return found


def _sums(blocks: Sequence[Block]) -> list[tuple[float, float, float]]:
    """Seconds, records, and seconds times the squared rate: of no block, of the first, of the first two, and so on."""
    sums = [(0.0, 0.0, 0.0)]
    for block in blocks:
        seconds, records, squares = sums[-1]
        length, rate = block.end - block.start, rate_of([block])
        sums.append((seconds + length, records + block.records, squares + length * rate * rate))
    return sums


def episodes_of(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks that follow upon one another, together."""
    episodes: list[list[Block]] = []
    for block in blocks:
        if episodes and block.start - episodes[-1][-1].end <= EPISODE_GAP_SECONDS:
            episodes[-1].append(block)
        else:
            episodes.append([block])
    return episodes


def margin_of(blocks: Sequence[Block]) -> float:
    """Half the 95 % interval of the mean rate."""
    n, seconds, rate = len(blocks), seconds_of(blocks), rate_of(blocks)
    weights = [(b.end - b.start) / seconds for b in blocks]
    variance = scatter_of(blocks) ** 2 * sum(w * w for w in weights)
    errors = [rate_of([b]) - rate for b in blocks]
    squares = sum(e * e for e in errors)
    correlation = sum(a * b for a, b in pairwise(errors)) / squares if squares > 0 else 0.0
    # Seen from their own mean, errors look less correlated than they are, by about 1/n.
    correlation = min(MOST_CORRELATION, max(0.0, correlation + 1 / n))
    variance *= (1 + correlation) / (1 - correlation)
    return T_95[min(n - 1, len(T_95)) - 1] * math.sqrt(variance)


def scatter_of(blocks: Sequence[Block]) -> float:
    """Standard deviation of the blocks' rates, each counted by its length."""
    n, seconds, rate = len(blocks), seconds_of(blocks), rate_of(blocks)
    squares = sum((b.end - b.start) * (rate_of([b]) - rate) ** 2 for b in blocks)
    return math.sqrt(squares / seconds * n / (n - 1))


def seconds_of(blocks: Sequence[Block]) -> float:
    """Time in blocks."""
    return sum(b.end - b.start for b in blocks)


def rate_of(blocks: Sequence[Block]) -> float:
    """Records per second over all of them."""
    return sum(b.records for b in blocks) / seconds_of(blocks)


def whole_of(episode: Sequence[Block]) -> Block:
    """An episode as one block, without what lies between its blocks."""
    return Block(episode[0].start, episode[0].start + seconds_of(episode), sum(b.records for b in episode))

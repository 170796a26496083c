"""The work of the consumers that are measured: a message waits T1 and computes T2, both known beforehand."""

import hashlib
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

#: Rounds of hashing that are timed to learn how fast they are: a few milliseconds.
_TRIAL_ROUNDS = 5_000
#: How much of what is left is computed at once. The rest then makes good what the piece took more or less.
_PIECE_SHARE = 0.85
#: As near as this, as a share of the whole, the work is done.
_NEAR_ENOUGH = 0.02
#: Random times come in blocks of so many.
_BLOCK = 100


@dataclass(frozen=True, slots=True)
class Mix:
    """What a message costs, in seconds. Where ``random``, both times are exponentially distributed with these means."""

    t1_seconds: float
    t2_seconds: float
    random: bool = False

    def __str__(self) -> str:
        ratio = self.t1_seconds / self.t2_seconds
        kind = "random" if self.random else "constant"
        return f"T1:T2 = {ratio:g}:1 ({self.t1_seconds * 1e3:g} and {self.t2_seconds * 1e3:g} ms, {kind})"


class Work:
    """Handles messages of a mix. For one thread. CPU is spent on hashing, without the interpreter lock."""

    def __init__(self, mix: Mix, seed: int) -> None:
        self._mix = mix
        self._random = Random(seed)
        self._t1_seconds = self._times(mix.t1_seconds)
        self._t2_seconds = self._times(mix.t2_seconds)
        self._rounds_per_second = 1.0
        began = time.thread_time()
        _hash(_TRIAL_ROUNDS)
        self._learn(_TRIAL_ROUNDS, time.thread_time() - began)

    def handle(self) -> None:
        """Wait and compute for one message."""
        time.sleep(next(self._t1_seconds))
        self._compute(next(self._t2_seconds))

    def first_pause_seconds(self) -> float:
        """When to begin: else all threads begin together, and want the cores together for long."""
        return self._random.uniform(0, self._mix.t1_seconds + self._mix.t2_seconds)

    def _times(self, mean_seconds: float) -> Iterator[float]:
        """The mean for ever; where random, exponential times, in blocks of this mean: few messages have it, too.

        A block is the middles of so many equally likely parts of the distribution, shuffled.
        """
        while not self._mix.random:
            yield mean_seconds
        parts = [-math.log((part + 0.5) / _BLOCK) for part in range(_BLOCK)]
        mean = sum(parts) / _BLOCK
        while True:
            self._random.shuffle(parts)
            yield from (mean_seconds * part / mean for part in parts)

    def _compute(self, seconds: float) -> None:
        """Spend so many seconds of CPU by the thread's own clock, however fast the core is at the moment."""
        now = time.thread_time()
        end = now + seconds
        while (left := end - now) > _NEAR_ENOUGH * seconds:
            rounds = max(1, round(_PIECE_SHARE * left * self._rounds_per_second))
            _hash(rounds)
            before, now = now, time.thread_time()
            if rounds * 10 > seconds * self._rounds_per_second:
                self._learn(rounds, now - before)

    def _learn(self, rounds: int, took_seconds: float) -> None:
        self._rounds_per_second = rounds / max(took_seconds, 1e-9)


def _hash(rounds: int) -> None:
    hashlib.pbkdf2_hmac("sha256", b"lagwise", b"capacity", rounds)


def pin(cores: frozenset[int]) -> None:
    """Have the calling thread, and those that it starts from now on, run on these cores alone."""
    os.sched_setaffinity(0, cores)

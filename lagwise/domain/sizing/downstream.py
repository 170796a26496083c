"""Whether what consumers wait for is full: more threads then only wait longer.

A pool, a database or a quota that serves so many calls at a time does no more for more callers. Measured T1 rises with
the number of threads, and the formula, which takes T1 as given, asks for more threads: the more there are, the more it
advises. What gives it away is that throughput stayed where it was.

That alone proves nothing: throughput also stays where it was when no more arrives. So only times count in which the
threads were busy. By Little's law the share of their time in which they are is throughput times the time per message,
over their number (J. D. C. Little, *A Proof for the Queuing Formula L = λW*, 1961).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from math import log

from lagwise.domain.humanise import plural, precise_duration, significant, significant_rate

#: Names of the inputs of a capacity verdict that hold what a full downstream does, and with how many members it was
#: full. The first one's source is the evidence.
RATE_INPUT, MEMBERS_INPUT = "downstream_rate_per_second", "downstream_members"

#: Two measurements are compared where one had so many times the threads of the other.
LEAST_GROWTH = 1.5
#: Threads are busy that spend so much of their time on messages.
BUSY_SHARE = 0.6
#: Means of fewer messages are left out.
LEAST_MESSAGES = 100
#: Throughput did not rise where it grew by a smaller part of the growth of the threads, both in logarithms.
MOST_GAINED = 0.25
#: T1 rose with the threads where it grew by a larger part of their growth, both in logarithms.
LEAST_T1_GROWTH = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredWork:
    """What a group's consumers measured of themselves with so many threads in all; times are means per message."""

    threads: int
    #: Members that these threads belong to.
    members: int
    t1_seconds: float
    #: How long a message keeps a thread: waiting, on the CPU, and in the run queue.
    seconds_per_message: float
    rate_per_second: float
    messages: int
    measured_at: datetime

    @property
    def is_busy(self) -> bool:
        """Whether the threads could hardly have done more."""
        busy_threads = self.rate_per_second * self.seconds_per_message
        return self.messages >= LEAST_MESSAGES and busy_threads >= BUSY_SHARE * self.threads


@dataclass(frozen=True, slots=True, kw_only=True)
class DownstreamFull:
    """That the downstream is full, and how that is known."""

    #: What it does at most, messages per second.
    rate_per_second: float
    #: The measurements that show it, in words.
    evidence: str
    #: With so many members it was full.
    members: int
    messages: int
    measured_at: datetime

    @property
    def sentence(self) -> str:
        """What is so, and what it is known from."""
        rate = significant(self.rate_per_second)
        return (
            f"Downstream is full at about {rate}/s: more threads, nodes or partitions would not help. {self.evidence}"
        )

    def verdict(self, required_rate_per_second: float) -> str:
        """The advice to a workload that needs so much capacity, messages per second."""
        needed = significant(required_rate_per_second)
        if required_rate_per_second <= self.rate_per_second:
            return f"{self.sentence} The {needed}/s needed are within that."
        return (
            f"{self.sentence} {needed}/s are needed: find out what limits the downstream (connections, a quota, a "
            "database) and raise that, or ask less of it for each message (batches, a cache)."
        )


def downstream_full(measured: Iterable[MeasuredWork]) -> DownstreamFull | None:
    """Whether the downstream is full; None where nothing shows it.

    The newest busy measurement is compared with every other one: what was measured before the downstream was changed
    says nothing of it. Of several comparisons that show it, the one over the widest range of threads is named.
    """
    busy = [work for work in measured if work.is_busy]
    if not busy:
        return None
    newest = max(busy, key=lambda work: (work.measured_at, work.threads))
    pairs = [tuple(sorted((work, newest), key=lambda w: w.threads)) for work in busy]
    shown = [(fewer, more) for fewer, more in pairs if _shows_it(fewer, more)]
    if not shown:
        return None
    fewer, more = max(shown, key=lambda pair: (pair[1].threads / pair[0].threads, pair[0].measured_at))
    alike = [work.rate_per_second for work in busy if fewer.threads <= work.threads <= more.threads]
    return DownstreamFull(
        rate_per_second=sum(alike) / len(alike),
        evidence=f"{_measured_text(fewer)}; {_measured_text(more)}.",
        members=fewer.members,
        messages=fewer.messages + more.messages,
        measured_at=newest.measured_at,
    )


def _shows_it(fewer: MeasuredWork, more: MeasuredWork) -> bool:
    """Whether T1 rose with the threads while throughput did not."""
    if more.threads < LEAST_GROWTH * fewer.threads or fewer.t1_seconds <= 0.0 or fewer.rate_per_second <= 0.0:
        return False
    threads = log(more.threads / fewer.threads)
    gained = log(more.rate_per_second / fewer.rate_per_second) / threads
    risen = log(more.t1_seconds / fewer.t1_seconds) / threads if more.t1_seconds > 0.0 else 0.0
    return gained < MOST_GAINED and risen > LEAST_T1_GROWTH


def _measured_text(work: MeasuredWork) -> str:
    did = f"{plural(work.threads, 'thread')} did {significant_rate(work.rate_per_second)}"
    return f"{did} with a T1 of {precise_duration(work.t1_seconds)}"

"""What a consumer measured of itself, as it stands in the metadata of its commits: the text of ``lagwise.probe``.

``docs/probe.md`` has the grammar. Metadata is anybody's: what is not such a text, or not a possible one, is no
measurement, and never an error.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from lagwise.domain.sizing.ranges import MAX_CORES, MAX_SERVICE_SECONDS, MAX_THREADS, MIN_CORES, MIN_SERVICE_SECONDS

#: What the text begins with: format and version, and the space before the first field.
PREFIX = "lw1 "
#: A text longer than this is not ours. Kafka's own limit is ``offset.metadata.max.bytes``, 4,096 by default.
LONGEST_TEXT = 512

#: One wait for the interpreter lock matters from this share of T1 + T2 on: a message has several, and with 1.4 % a
#: wait T1 came out 7 % too large. Below the floor it may be the timer's doing.
LOCK_WAIT_SHARE = 0.01
LOCK_WAIT_FLOOR_SECONDS = 0.0005

_FIELD = re.compile(r"([a-z][a-z0-9]{0,7})=([!-~]{1,32})")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][-+]?[0-9]{1,3})?")
_COUNT = re.compile(r"[1-9][0-9]{0,11}")
_MOST_MESSAGES = 10**11
_LONGEST_WINDOW_SECONDS = 10 * 365 * 86_400.0
#: 2020 to 9999: what was measured before there was a probe, and what no calendar holds, is no time.
_EARLIEST, _LATEST = 1_577_836_800, 253_402_300_799


class MeasuredBy(StrEnum):
    """Where service times come from."""

    PROBE = "probe"
    #: What RocketMQ's clients report of a message as a whole.
    CONSUME_RT = "consume_rt"


class T1Doubt(StrEnum):
    """Why a measured T1 is more than the time spent waiting for something outside: it can only be an upper bound."""

    #: The time in the run queue could not be read and is in it.
    RUN_QUEUE = "run_queue"
    #: Threads wait for the interpreter lock, and that is in it.
    INTERPRETER_LOCK = "interpreter_lock"


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """Means per message, in seconds. None is not reported."""

    #: Time spent waiting for something outside.
    t1_seconds: float
    #: CPU time.
    t2_seconds: float
    #: Messages that the means are taken over.
    messages: int
    #: Time runnable without a core; where None, it is in T1.
    run_queue_seconds: float | None = None
    #: How long one wait for the interpreter lock took; those of a message are in T1.
    lock_wait_seconds: float | None = None
    #: Threads that did the work.
    threads: int | None = None
    #: How long they were measured for.
    window_seconds: float | None = None
    #: When the measurement ended.
    ended_at: datetime | None = None
    #: CPU time of the whole process, with what its client takes to fetch and commit.
    process_cpu_seconds: float | None = None
    #: How many cores the process may use.
    cores: float | None = None

    @property
    def t1_doubt(self) -> T1Doubt | None:
        """Why T1 is only an upper bound; None where nothing speaks against it.

        One thread hardly waits for the interpreter lock where no other works on messages: its T1 was within 5 % of what
        a message really waited, however long the probe's own thread waited for the lock. A process with several probes,
        each of which may have a thread of its own, reports no CPU time of the process.
        """
        if self.run_queue_seconds is None:
            return T1Doubt.RUN_QUEUE
        if self.threads == 1 and self.process_cpu_seconds is not None:
            return None
        matters = max(LOCK_WAIT_FLOOR_SECONDS, LOCK_WAIT_SHARE * (self.t1_seconds + self.t2_seconds))
        if self.lock_wait_seconds is not None and self.lock_wait_seconds >= matters:
            return T1Doubt.INTERPRETER_LOCK
        return None


def parse_service_times(text: str) -> ServiceTimes | None:
    """The measurement in a commit's metadata; None where there is none, or an impossible one.

    T1 below a nanosecond is 0; a T2 below it was not measured, and the text is refused, as it is for any field that is
    not within its range. Fields with other names are left alone: they are a later version's.
    """
    if not text.startswith(PREFIX) or len(text) > LONGEST_TEXT:
        return None
    fields: dict[str, str] = {}
    for part in text[len(PREFIX) :].split(" "):
        field = _FIELD.fullmatch(part)
        if field is None or field[1] in fields:
            return None
        fields[field[1]] = field[2]
    try:
        t1_seconds = _number(fields["t1"], 0.0, MAX_SERVICE_SECONDS)
        return ServiceTimes(
            t1_seconds=0.0 if t1_seconds < MIN_SERVICE_SECONDS else t1_seconds,
            t2_seconds=_number(fields["t2"], MIN_SERVICE_SECONDS, MAX_SERVICE_SECONDS),
            messages=_count(fields["n"], 1, _MOST_MESSAGES),
            run_queue_seconds=_number(fields["tq"], 0.0, MAX_SERVICE_SECONDS) if "tq" in fields else None,
            lock_wait_seconds=_number(fields["tl"], 0.0, MAX_SERVICE_SECONDS) if "tl" in fields else None,
            threads=_count(fields["c"], 1, MAX_THREADS) if "c" in fields else None,
            window_seconds=_number(fields["s"], 0.0, _LONGEST_WINDOW_SECONDS) if "s" in fields else None,
            ended_at=_time(fields["at"]) if "at" in fields else None,
            process_cpu_seconds=_number(fields["cpu"], 0.0, MAX_SERVICE_SECONDS) if "cpu" in fields else None,
            cores=_number(fields["cores"], MIN_CORES, MAX_CORES) if "cores" in fields else None,
        )
    except (KeyError, ValueError):
        return None


def _number(text: str, low: float, high: float) -> float:
    if _NUMBER.fullmatch(text) is None or not low <= float(text) <= high:
        raise ValueError(text)
    return float(text)


def _count(text: str, low: int, high: int) -> int:
    if _COUNT.fullmatch(text) is None or not low <= int(text) <= high:
        raise ValueError(text)
    return int(text)


def _time(text: str) -> datetime:
    return datetime.fromtimestamp(_count(text, _EARLIEST, _LATEST), UTC)

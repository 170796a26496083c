"""Measures a message handler: what a message costs on the CPU, in waiting, and in queueing for a core.

The means are written, as a short text, to the metadata of the consumer's commits, from which Lagwise reads them: no
agent, no port. ``docs/probe.md`` has the text's grammar, for any language, and the use of this module.

T2 is the CPU time of the thread. Tq is the time that it was runnable but waited for a core, which Linux reports in
``/proc/thread-self/schedstat``. T1 = wall time − T2 − Tq is the time that it waited for something else. Where Tq cannot
be read the text leaves it out, and T1 includes it. T1 also includes waits for CPython's interpreter lock, whose length
:class:`_LockMeter` samples: it is ``tl`` in the text. ``cpu`` is the CPU time of the whole process: fetching and
committing are in no handler. ``cores`` is the number of cores that the process may use.
"""

import contextlib
import functools
import inspect
import operator
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, ParamSpec, TypeVar

with contextlib.suppress(ImportError):  # a Python may be built without it
    import ctypes

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: What the text begins with: the format and its version.
MARK = "lw1"
#: Interval of the lock meter's samples. Each process has one meter: at 20 times a second, those of thirty consumers of
#: one thread each took a twentieth of a core from them.
_METER_SECONDS = 0.2

_Sums = tuple[int, ...]  # messages, and their CPU time, run-queue time and wall time in nanoseconds
_NOTHING: _Sums = (0, 0, 0, 0)
_SCHEDSTAT_BYTES = 64  # more than its three numbers take


def _pread_with_the_lock() -> Callable[..., int] | None:
    """pread(2) that keeps the interpreter lock, or None: a thread that releases it to read a clock gets it back late
    where threads wait for cores (five on one core did an eighth less, and T1 was 17 % too large)."""
    try:
        pread = ctypes.PyDLL(None).pread
    except (NameError, OSError, AttributeError):
        return None
    pread.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long)
    pread.restype = ctypes.c_ssize_t
    return pread


class _RunQueue:
    """How long the thread that made this has waited for a core so far. For that thread alone."""

    def __init__(self) -> None:
        self._file = -1
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            # A thread that runs has been given a core at least once: 0 times is a kernel that does not count.
            self.is_known = int(os.pread(self._file, _SCHEDSTAT_BYTES, 0).split()[2]) > 0
        except (AttributeError, OSError, ValueError, IndexError):
            self.is_known = False
        self._buffer = ctypes.create_string_buffer(_SCHEDSTAT_BYTES + 1) if _PREAD is not None else None

    def nanoseconds(self) -> int:  # 0 where it is unknown
        if not self.is_known:
            return 0
        if _PREAD is None or self._buffer is None:
            return int(os.pread(self._file, _SCHEDSTAT_BYTES, 0).split()[1])
        # The numbers only grow, so no digits of an earlier reading remain.
        _PREAD(self._file, self._buffer, _SCHEDSTAT_BYTES, 0)
        return int(self._buffer.value.split()[1])

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


_PREAD = _pread_with_the_lock()


class _Worker:
    """The measurements of one thread. It alone writes, and replaces ``sums`` as a whole, so that others can read."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.run_queue = _RunQueue()
        self.busy = False
        self.sums = _NOTHING
        #: The part of ``sums`` that is already in a text.
        self.taken = _NOTHING

    def clocks(self) -> tuple[int, int, int]:
        """The thread's CPU, run-queue and wall clocks, always in this order. A thread whose time slice is over loses
        its core at the next system call: that is the first one here, and what it then waits for a core is in the
        run-queue time and in the wall time, or in neither."""
        return time.thread_time_ns(), self.run_queue.nanoseconds(), time.perf_counter_ns()


class _Measured:
    """The context manager around one call of a handler. Exceptions pass, and the time until then is measured.

    Inside another one of the same thread it does nothing: the outer one measures both.
    """

    __slots__ = ("_began", "_outermost", "_worker", "messages")

    def __init__(self, worker: _Worker, messages: int) -> None:
        self._worker = worker
        self.messages = messages  # how many are handled; may be set inside the block

    def __enter__(self) -> "_Measured":
        worker = self._worker
        self._outermost = not worker.busy
        if self._outermost:
            worker.busy = True
            self._began = worker.clocks()
        return self

    def __exit__(self, *exception: object) -> None:
        worker = self._worker
        if self._outermost:
            worker.busy = False
            if self.messages > 0:
                worker.sums = _plus(worker.sums, (self.messages, *_minus(worker.clocks(), self._began)))


class _LockMeter:
    """Samples how long a thread waits for the interpreter lock: by how much it is late after a short sleep.

    What it then waited for a core is not counted, nor the timer's own lateness: the least ever seen.
    """

    def __init__(self) -> None:
        self.samples = (0, 0)  # how many, and the sum of them in nanoseconds
        self._least: int | None = None
        threading.Thread(target=self._run, name="lagwise-probe", daemon=True).start()

    def seconds(self, since: tuple[int, int]) -> float | None:
        """Mean wait of the samples after ``since``; None where there are none."""
        (count, total), (count_before, total_before) = self.samples, since
        if count == count_before or self._least is None:
            return None
        return max(0.0, (total - total_before) / (count - count_before) - self._least) / 1e9

    def _run(self) -> None:
        itself = _Worker()
        # Without the time in the run queue, waits for a core would count as waits for the lock.
        while itself.run_queue.is_known:
            before = itself.clocks()
            time.sleep(_METER_SECONDS)
            cpu, queued, wall = _minus(itself.clocks(), before)
            late = max(0, wall - cpu - queued - int(_METER_SECONDS * 1e9))
            self._least = late if self._least is None else min(late, self._least)
            self.samples = (self.samples[0] + 1, self.samples[1] + late)


class Probe:
    """Measures handlers in any number of threads, and creates the text for their commits.

    A text covers at least ``period_seconds``, and stays the same until the next one is due: all commits of that time
    carry one measurement, and no two overlap. 0 makes a new text for each commit after which there is something new.
    """

    def __init__(self, period_seconds: float = 10.0) -> None:
        self._period_seconds = period_seconds
        self._start()
        _PROBES.add(self)
        for probe in list(_PROBES):
            probe._is_alone &= len(_PROBES) == 1

    def _start(self) -> None:
        """Start from zero: at construction, and in the child of a fork, which has none of the parent's threads."""
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._workers: list[_Worker] = []
        self._text = ""
        self._began_at: float | None = None
        self._began_cpu, self._is_alone = 0, True  # nanoseconds of the process; whether they are all of this probe
        self._meter: _LockMeter | None = None
        self._meter_taken = (0, 0)
        #: For the next text: sums, of how many threads, and whether all of them know their time in the run queue.
        self._sums, self._threads, self._queue_known = _NOTHING, 0, True

    def handler(self, handle: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorator: a call handles one message. TypeError for functions that do their work after the call."""
        return self._measuring(handle, lambda arguments: 1)

    def batch_handler(self, handle: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorator: a call handles the messages in its last positional argument, which has a length."""

        def count(arguments: tuple[Any, ...]) -> int:
            if not arguments or not hasattr(arguments[-1], "__len__"):
                raise TypeError(f"{handle!r} needs its messages as the last positional argument, with a length")
            return len(arguments[-1])

        return self._measuring(handle, count)

    def messages(self, count: int = 1) -> _Measured:
        """Context manager around the handling of this many messages. With 0, nothing is counted."""
        return _Measured(getattr(self._mine, "worker", None) or self._new_worker(), count)

    def metadata(self) -> str:
        """The text to commit with an offset; empty as long as there is no measurement."""
        with self._lock:
            now = time.monotonic()
            if self._began_at is not None and now - self._began_at >= self._period_seconds:
                self._create_text(now, now - self._began_at)
            return self._text

    def commit(
        self, consumer: Any, message: Any = None, *, offsets: Iterable[Any] | None = None, **settings: Any
    ) -> Any:
        """confluent-kafka's ``consumer.commit`` of a message or of TopicPartitions, with the text in it."""
        return consumer.commit(offsets=self._stamped(message, offsets), **settings)

    def store_offsets(self, consumer: Any, message: Any = None, *, offsets: Iterable[Any] | None = None) -> None:
        """confluent-kafka's ``consumer.store_offsets`` with the text in it, where the client commits automatically."""
        consumer.store_offsets(offsets=self._stamped(message, offsets))

    def _measuring(self, handle: Callable[_P, _R], count: Callable[[tuple[Any, ...]], int]) -> Callable[_P, _R]:
        later = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_later(handle) for is_later in later):
            raise TypeError(f"{handle!r} does its work after the call, which a thread's clocks do not measure")

        @functools.wraps(handle)
        def measured(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self.messages(count(args)):
                return handle(*args, **kwargs)

        return measured

    def _new_worker(self) -> _Worker:
        worker = self._mine.worker = _Worker()
        with self._lock:
            self._collect_ended()
            self._workers.append(worker)
            if self._began_at is None:
                self._began_at, self._began_cpu = time.monotonic(), time.process_time_ns()
                self._is_alone = len(_PROBES) == 1
                self._meter = _lock_meter()
                self._meter_taken = self._meter.samples if self._meter else (0, 0)
        return worker

    def _collect(self, workers: Iterable[_Worker]) -> None:
        """Add what these workers have measured since the last call."""
        for worker in workers:
            sums = worker.sums
            if sums != worker.taken:
                self._sums = _plus(self._sums, _minus(sums, worker.taken))
                self._threads += 1
                self._queue_known = self._queue_known and worker.run_queue.is_known
                worker.taken = sums

    def _collect_ended(self) -> None:
        ended = [worker for worker in self._workers if not worker.thread.is_alive()]
        self._collect(ended)
        self._workers = [worker for worker in self._workers if worker not in ended]

    def _create_text(self, now: float, seconds: float) -> None:
        """Create the text of the last ``seconds``, if anything was measured in them."""
        self._collect_ended()
        self._collect(self._workers)
        messages, cpu, queued, wall = self._sums
        if messages == 0:
            return
        each = 1e9 * messages
        began_cpu, self._began_cpu = self._began_cpu, time.process_time_ns()
        lock_wait = self._meter.seconds(self._meter_taken) if self._meter else None
        self._meter_taken = self._meter.samples if self._meter else (0, 0)
        measured = {
            "t1": max(0, wall - cpu - queued) / each, "t2": cpu / each,
            "tq": queued / each if self._queue_known else None, "n": messages, "c": self._threads, "s": seconds,
            "at": int(time.time()), "tl": lock_wait, "cores": usable_cores(),
            "cpu": (self._began_cpu - began_cpu) / each if self._is_alone else None,  # of several: whose is it?
        }  # fmt: skip
        fields = (f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in measured.items() if v is not None)
        self._text, self._began_at, self._is_alone = " ".join((MARK, *fields)), now, len(_PROBES) == 1
        self._sums, self._threads, self._queue_known = _NOTHING, 0, True

    def _stamped(self, message: Any, offsets: Iterable[Any] | None) -> list[Any]:
        """TopicPartitions with the text. Other metadata is left unchanged."""
        if message is not None:
            # The message came from this module, so it is loaded; importing it here would be a dependency.
            made = sys.modules["confluent_kafka"].TopicPartition
            after = {"leader_epoch": epoch} if (epoch := message.leader_epoch()) is not None else {}
            offsets = [made(message.topic(), message.partition(), message.offset() + 1, **after)]
        elif offsets is None:
            raise TypeError("what to commit is a message or offsets")
        text = self.metadata()
        return [_with_metadata(offset, text) for offset in offsets]


def usable_cores(root: Path = Path("/")) -> float | None:
    """Cores that this process may run on, or fewer where a control group (version 2) has a limit; None: unknown."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min([float(here), *_limits(root)]) if here else None


def _limits(root: Path) -> Iterator[float]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
        own = PurePosixPath(next((line[3:] for line in lines if line.startswith("0::")), "/"))
    except OSError:
        return
    for group in (own, *own.parents):
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # no such file, or "max": no limit
            quota, period = (root / "sys/fs/cgroup" / str(group).lstrip("/") / "cpu.max").read_text().split()
            yield int(quota) / int(period)


def _with_metadata(offset: Any, text: str) -> Any:
    """A TopicPartition with the text, unless it has other metadata."""
    if not text or (offset.metadata and offset.metadata.partition(" ")[0] != MARK):
        return offset
    epoch = {} if offset.leader_epoch is None else {"leader_epoch": offset.leader_epoch}
    return type(offset)(offset.topic, offset.partition, offset.offset, metadata=text, **epoch)


def _plus(one: _Sums, other: _Sums) -> _Sums:
    return tuple(map(operator.add, one, other))


def _minus(one: _Sums, other: _Sums) -> _Sums:
    return tuple(map(operator.sub, one, other))


_PROBES: "weakref.WeakSet[Probe]" = weakref.WeakSet()
_METERS: list[_LockMeter] = []  # none or one


def _lock_meter() -> _LockMeter | None:
    """The meter of this process; None in a build without an interpreter lock."""
    if not _METERS and getattr(sys, "_is_gil_enabled", lambda: True)():
        _METERS.append(_LockMeter())
    return _METERS[0] if _METERS else None


def _forked() -> None:
    """In the child of a fork: no other thread has come along, and a lock may have been held by one."""
    _METERS.clear()
    for probe in list(_PROBES):
        probe._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

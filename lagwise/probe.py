"""Measures a message handler: what a message costs on the CPU, in waiting, and in queueing for a core.

The means go, as a short text, into the metadata of the consumer's commits, where Lagwise finds them: no agent, no port.
Standard library only, and nothing else of Lagwise. ``docs/probe.md`` has the text's grammar, for any language.

    probe = Probe()

    @probe.handler
    def handle(message): ...

    while True:
        message = consumer.poll(1.0)
        ...
        handle(message)
        probe.commit(consumer, message)

Measured are T2, the CPU time of the thread; Tq, the time it was runnable but waited for a core, which Linux tells in
``/proc/thread-self/schedstat``; and T1 = wall time − T2 − Tq, the time it waited for something else. Where Tq cannot be
read the text leaves it out, and T1 then holds it. T1 holds the waits for CPython's interpreter lock too: how long one
is gets sampled by :class:`_LockMeter` and told as ``tl``.

One probe serves all threads of a process that do the same work.
"""

import functools
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: What the text begins with: the format and its version.
MARK = "lw1"
#: How often the lock's meter looks: 20 times a second cost about a thousandth of a core.
_METER_SECONDS = 0.05

#: Messages, and their wall time, CPU time and run-queue time in nanoseconds.
_Sums = tuple[int, int, int, int]
_NOTHING: _Sums = (0, 0, 0, 0)


class _RunQueue:
    """How long the thread that made this has waited for a core so far. For that thread alone."""

    def __init__(self) -> None:
        self._file = -1
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            # A thread that runs has been given a core at least once: 0 times is a kernel that does not count.
            if int(os.pread(self._file, 64, 0).split()[2]) == 0:
                self.close()
        except (AttributeError, OSError, ValueError, IndexError):
            self.close()

    @property
    def known(self) -> bool:
        """Whether the system tells."""
        return self._file >= 0

    def nanoseconds(self) -> int:
        """0 where it is not known."""
        return int(os.pread(self._file, 64, 0).split()[1]) if self._file >= 0 else 0

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


class _Worker:
    """What one thread has measured. It alone writes, and replaces ``sums`` as a whole, so that others may read it."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.run_queue = _RunQueue()
        self.knows_queue = self.run_queue.known
        self.busy = False
        self.sums = _NOTHING
        #: What of ``sums`` earlier texts have told.
        self.told = _NOTHING


class _Measured:
    """The context manager around one call of a handler. Exceptions pass, and what led to them is measured.

    Inside another one of the same thread it does nothing: the outer one measures both.
    """

    __slots__ = ("_cpu", "_outermost", "_queued", "_wall", "_worker", "messages")

    def __init__(self, worker: _Worker, messages: int) -> None:
        self._worker = worker
        #: How many messages are handled. May be set inside, when that becomes known.
        self.messages = messages

    def __enter__(self) -> "_Measured":
        worker = self._worker
        self._outermost = not worker.busy
        if self._outermost:
            worker.busy = True
            # The wall clock is read last here, and first at the end: so it holds as little of the probe as possible.
            self._queued = worker.run_queue.nanoseconds()
            self._cpu = time.thread_time_ns()
            self._wall = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._outermost:
            return
        wall = time.perf_counter_ns() - self._wall
        cpu = time.thread_time_ns() - self._cpu
        worker = self._worker
        queued = worker.run_queue.nanoseconds() - self._queued
        worker.busy = False
        if self.messages > 0:
            so_far = worker.sums
            worker.sums = (so_far[0] + self.messages, so_far[1] + wall, so_far[2] + cpu, so_far[3] + queued)


class _LockMeter:
    """Samples how long a thread waits for the interpreter lock: by how much it is late after a short sleep.

    Neither what it then waited for a core is counted, nor the timer's own lateness, for which the least ever seen is
    taken.
    """

    def __init__(self) -> None:
        #: How many samples, and the sum of them in nanoseconds.
        self.samples = (0, 0)
        self._least: int | None = None
        threading.Thread(target=self._run, name="lagwise-probe", daemon=True).start()

    def seconds(self, since: tuple[int, int]) -> float | None:
        """Mean wait of the samples after ``since``; None where there are none."""
        (count, total), (count_before, total_before) = self.samples, since
        if count == count_before or self._least is None:
            return None
        return max(0.0, (total - total_before) / (count - count_before) - self._least) / 1e9

    def _run(self) -> None:
        run_queue = _RunQueue()
        # Without the time in the run queue it would be told with the wait for the lock, which is something else.
        while run_queue.known:
            queued, cpu, wall = run_queue.nanoseconds(), time.thread_time_ns(), time.perf_counter_ns()
            time.sleep(_METER_SECONDS)
            late = time.perf_counter_ns() - wall - int(_METER_SECONDS * 1e9)
            late = max(0, late - (time.thread_time_ns() - cpu) - (run_queue.nanoseconds() - queued))
            self._least = late if self._least is None else min(late, self._least)
            self.samples = (self.samples[0] + 1, self.samples[1] + late)


class Probe:
    """Measures handlers in any number of threads, and makes the text for their commits.

    A text covers at least ``period_seconds``, and stays the same until the next one is due: all commits of that time
    tell one measurement, and no two overlap. 0 makes a new text for each commit after which there is something new.
    """

    def __init__(self, period_seconds: float = 10.0) -> None:
        self._period_seconds = period_seconds
        self._workers: list[_Worker] = []
        self._start()
        _PROBES.add(self)

    def _start(self) -> None:
        """Begin with nothing: at first, and in the child of a fork, where the parent's threads are not."""
        for worker in self._workers:
            worker.run_queue.close()
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._workers = []
        self._text = ""
        self._began_at: float | None = None
        self._meter: _LockMeter | None = None
        self._meter_told = (0, 0)
        #: Of threads that have ended: sums not told yet, how many they were, whether all knew their run queue.
        self._ended: tuple[_Sums, int, bool] = (_NOTHING, 0, True)

    def handler(self, handle: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorator: a call handles one message. TypeError for functions that do their work after the call."""
        return self._measuring(handle, lambda arguments: 1)

    def batch_handler(self, handle: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorator: a call handles the messages in its last positional argument, which has a length."""
        return self._measuring(handle, lambda arguments: len(arguments[-1]))

    def messages(self, count: int = 1) -> _Measured:
        """Context manager around the handling of so many messages; its ``messages`` may be set inside.

        With none nothing is counted. Inside another measurement of the thread it does nothing.
        """
        worker: _Worker | None = getattr(self._mine, "worker", None)
        return _Measured(self._new_worker() if worker is None else worker, count)

    def metadata(self) -> str:
        """The text to commit with an offset; empty as long as there is no measurement."""
        with self._lock:
            now = time.monotonic()
            if self._began_at is not None and now - self._began_at >= self._period_seconds:
                self._tell(now)
            return self._text

    def commit(self, consumer: Any, message: Any = None, *, offsets: Iterable[Any] = (), **settings: Any) -> Any:
        """confluent-kafka's ``consumer.commit`` with the text: of a message, or of TopicPartitions.

        ``settings`` are passed on (``asynchronous=False``); what ``commit`` returns and raises is.
        """
        return consumer.commit(offsets=self._stamped(message, offsets), **settings)

    def store_offsets(self, consumer: Any, message: Any = None, *, offsets: Iterable[Any] = ()) -> None:
        """confluent-kafka's ``consumer.store_offsets`` with the text, for consumers that commit by themselves."""
        consumer.store_offsets(offsets=self._stamped(message, offsets))

    def _measuring(self, handle: Callable[_P, _R], count: Callable[[tuple[Any, ...]], int]) -> Callable[_P, _R]:
        later = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_later(handle) for is_later in later):
            raise TypeError(f"{handle!r} does its work after the call: a thread's time does not tell what it costs")

        @functools.wraps(handle)
        def measured(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self.messages(count(args)):
                return handle(*args, **kwargs)

        return measured

    def _new_worker(self) -> _Worker:
        worker = self._mine.worker = _Worker()
        with self._lock:
            self._let_go()
            self._workers.append(worker)
            if self._began_at is None:
                self._began_at = time.monotonic()
                self._meter = _lock_meter()
                self._meter_told = self._meter.samples if self._meter else (0, 0)
        return worker

    def _let_go(self) -> None:
        """Keep the sums of threads that have ended, and close their files."""
        for worker in [worker for worker in self._workers if not worker.thread.is_alive()]:
            self._workers.remove(worker)
            worker.run_queue.close()
            sums, count, known = self._ended
            if worker.sums != worker.told:
                self._ended = (_minus(sums, _minus(worker.told, worker.sums)), count + 1, known and worker.knows_queue)

    def _tell(self, now: float) -> None:
        """Make the text of what was measured since the last one, if there is anything."""
        self._let_go()
        (messages, wall, cpu, queued), threads, known = self._ended
        news = [(worker, sums) for worker in self._workers if (sums := worker.sums) != worker.told]
        for worker, sums in news:
            new = _minus(sums, worker.told)
            messages, wall, cpu, queued = messages + new[0], wall + new[1], cpu + new[2], queued + new[3]
            threads, known = threads + 1, known and worker.knows_queue
            worker.told = sums
        if messages == 0 or self._began_at is None:
            return
        each = 1e9 * messages
        fields = {"t1": max(0, wall - cpu - queued) / each, "t2": cpu / each}
        if known:
            fields["tq"] = queued / each
        fields |= {"n": messages, "c": threads, "s": round(now - self._began_at, 3), "at": int(time.time())}
        if self._meter is not None:
            lock_wait = self._meter.seconds(self._meter_told)
            self._meter_told = self._meter.samples
            if lock_wait is not None:
                fields["tl"] = lock_wait
        numbers = (f"{key}={value if isinstance(value, int) else f'{value:.6g}'}" for key, value in fields.items())
        self._text = " ".join((MARK, *numbers))
        self._began_at = now
        self._ended = (_NOTHING, 0, True)

    def _stamped(self, message: Any, offsets: Iterable[Any]) -> list[Any]:
        """TopicPartitions with the text. Metadata that somebody else put there is left alone."""
        if message is not None:
            # The message came from this module, so it is loaded; importing it here would be a dependency.
            made = sys.modules["confluent_kafka"].TopicPartition
            after = {"leader_epoch": epoch} if (epoch := message.leader_epoch()) is not None else {}
            offsets = [made(message.topic(), message.partition(), message.offset() + 1, **after)]
        text = self.metadata()
        return [_with_metadata(offset, text) for offset in offsets]


def _with_metadata(offset: Any, text: str) -> Any:
    """A TopicPartition with the text in the place of none, or of an earlier one."""
    if not text or (offset.metadata and offset.metadata.partition(" ")[0] != MARK):
        return offset
    epoch = {} if offset.leader_epoch is None else {"leader_epoch": offset.leader_epoch}
    return type(offset)(offset.topic, offset.partition, offset.offset, metadata=text, **epoch)


def _minus(one: _Sums, other: _Sums) -> _Sums:
    return (one[0] - other[0], one[1] - other[1], one[2] - other[2], one[3] - other[3])


_PROBES: "weakref.WeakSet[Probe]" = weakref.WeakSet()
_METERS: list[_LockMeter] = []
_METERS_LOCK = threading.Lock()


def _lock_meter() -> _LockMeter | None:
    """The meter of this process; None in a build without an interpreter lock."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    with _METERS_LOCK:
        if not _METERS:
            _METERS.append(_LockMeter())
        return _METERS[0]


def _forked() -> None:
    """In the child of a fork: no other thread has come along, and a lock may have been held by one."""
    global _METERS_LOCK
    _METERS_LOCK = threading.Lock()
    _METERS.clear()
    for probe in list(_PROBES):
        probe._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

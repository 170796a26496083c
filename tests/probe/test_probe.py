"""The probe: what it counts, what it says, and what it leaves alone. Its accuracy is measured by a benchmark."""

import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lagwise import probe as module
from lagwise.domain.capacity.service_times import PREFIX, ServiceTimes, parse_service_times
from lagwise.probe import MARK, Probe

MS = 1_000_000


def reported(probe: Probe) -> ServiceTimes:
    measured = parse_service_times(probe.metadata())
    assert measured is not None
    return measured


@pytest.fixture
def spend(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int, int], None]:
    """Makes time pass on this thread's clocks, which otherwise stand still: wall, CPU and run queue, in ms."""
    clocks = threading.local()

    def spent(wall_ms: int, cpu_ms: int, queued_ms: int) -> None:
        at = getattr(clocks, "at", (0, 0, 0))
        clocks.at = (at[0] + cpu_ms * MS, at[1] + queued_ms * MS, at[2] + wall_ms * MS)

    real = module._Worker.clocks

    def made_up(worker: module._Worker) -> tuple[int, int, int]:
        # The meter of the lock, which all probes share, may be at work.
        return real(worker) if worker.thread.name == "lagwise-probe" else getattr(clocks, "at", (0, 0, 0))

    monkeypatch.setattr(module._Worker, "clocks", made_up)
    return spent


@pytest.fixture
def a_kernel_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    init = module._RunQueue.__init__

    def counting(queue: module._RunQueue) -> None:
        init(queue)
        queue.is_known = True

    monkeypatch.setattr(module._RunQueue, "__init__", counting)


@pytest.mark.usefixtures("a_kernel_that_counts")
class TestArithmetic:
    def test_t1_is_what_is_left_of_the_wall_time(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        handle = probe.handler(spend)
        handle(20, 4, 1)
        handle(30, 6, 4)
        measured = reported(probe)
        assert (measured.t1_seconds, measured.t2_seconds, measured.run_queue_seconds) == (0.0175, 0.005, 0.0025)
        assert (measured.messages, measured.threads) == (2, 1)

    def test_what_is_in_no_handler_is_in_the_cpu_time_of_the_process(
        self, spend: Callable[[int, int, int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cpu = iter([1_000_000, 15_000_000, 15_000_000])
        monkeypatch.setattr(module.time, "process_time_ns", lambda: next(cpu))
        monkeypatch.setattr(module, "_PROBES", weakref.WeakSet())
        probe = Probe(0)
        handle = probe.handler(spend)
        handle(20, 4, 1)
        handle(30, 6, 4)
        measured = reported(probe)
        assert (measured.t2_seconds, measured.process_cpu_seconds) == (0.005, 0.007)

        other = Probe(0)
        handle(20, 4, 1)
        assert reported(probe).process_cpu_seconds is None, "nobody knows what of it is the other's"
        assert other.metadata() == ""

    def test_a_second_probe_within_a_text_leaves_the_cpu_time_of_the_process_out(
        self, spend: Callable[[int, int, int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_PROBES", weakref.WeakSet())
        probe = Probe(0)
        handle = probe.handler(spend)
        known = []
        for lives in ("none", "within", "from within", "into", "none"):
            if lives in ("within", "from within"):
                other = Probe(0)
            if lives in ("within", "into"):
                del other
            handle(20, 4, 1)
            known.append(reported(probe).process_cpu_seconds is not None)
        assert known == [True, False, False, False, True]

    def test_a_batch_is_divided_by_its_messages(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)

        @probe.batch_handler
        def handle(batch: list[str]) -> None:
            spend(12, 8, 0)

        handle(["a", "b", "c", "d"])
        measured = reported(probe)
        assert (measured.t1_seconds, measured.t2_seconds, measured.messages) == (0.001, 0.002, 4)

    def test_a_batch_handler_may_be_a_method(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)

        class Shop:
            @probe.batch_handler
            def handle(self, batch: list[str]) -> None:
                spend(12, 8, 0)

        Shop().handle(["a", "b"])
        assert reported(probe).messages == 2

    @pytest.mark.parametrize(
        "call", [lambda handle: handle(batch=[1]), lambda handle: handle(iter([1])), lambda handle: handle()]
    )
    def test_a_batch_without_a_length_says_what_is_wanted(self, call: Callable[[Any], None]) -> None:
        handled: list[Any] = []

        def handle(batch: Any = None) -> None:
            handled.append(batch)

        with pytest.raises(TypeError, match="needs its messages as the last positional argument, with a length"):
            call(Probe().batch_handler(handle))
        assert handled == []

    def test_a_handler_of_batches_may_raise_what_it_likes(self) -> None:
        def handle(batch: list[int]) -> None:
            raise IndexError("mine")

        with pytest.raises(IndexError, match="mine"):
            Probe().batch_handler(handle)([1])

    def test_the_number_of_messages_may_become_known_inside(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        with probe.messages(0) as batch:
            spend(10, 5, 0)
            batch.messages = 5
        assert (reported(probe).t2_seconds, reported(probe).messages) == (0.001, 5)

    def test_an_empty_batch_counts_nothing(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        with probe.messages(0):
            spend(10, 5, 0)
        assert probe.metadata() == ""
        with probe.messages():
            spend(4, 3, 0)
        assert (reported(probe).t1_seconds, reported(probe).t2_seconds, reported(probe).messages) == (0.001, 0.003, 1)

    def test_inside_another_measurement_nothing_is_counted_twice(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        handle = probe.handler(spend)
        with probe.messages(2):
            handle(3, 1, 0)
            handle(3, 1, 0)
            spend(4, 2, 0)
        measured = reported(probe)
        assert (measured.t1_seconds, measured.t2_seconds, measured.messages) == (0.003, 0.002, 2)

    def test_exceptions_pass_and_are_measured(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)

        @probe.handler
        def handle() -> None:
            spend(5, 2, 0)
            raise KeyError("the customer")

        for _ in range(2):
            with pytest.raises(KeyError, match="the customer"):
                handle()
        assert (reported(probe).t1_seconds, reported(probe).messages) == (0.003, 2)

    def test_threads_are_added_up_also_those_that_have_ended(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        handle = probe.handler(spend)
        for milliseconds in (10, 20, 30):
            thread = threading.Thread(target=handle, args=(milliseconds, 5, 0))
            thread.start()
            thread.join()
        handle(20, 5, 0)
        measured = reported(probe)
        assert (measured.t1_seconds, measured.t2_seconds) == (0.015, 0.005)
        assert (measured.messages, measured.threads) == (4, 4)

    def test_clocks_that_disagree_make_no_negative_wait(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        probe.handler(spend)(10, 10, 1)
        assert reported(probe).t1_seconds == 0.0

    def test_each_report_contains_only_new_measurements(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(0)
        handle = probe.handler(spend)
        handle(10, 5, 0)
        first = probe.metadata()
        assert probe.metadata() == first  # nothing is new
        handle(30, 5, 0)
        assert reported(probe).t1_seconds == 0.025
        assert reported(probe).messages == 1

    def test_within_a_period_the_text_stays(self, spend: Callable[[int, int, int], None]) -> None:
        probe = Probe(period_seconds=3600)
        probe.handler(spend)(10, 5, 0)
        assert probe.metadata() == ""


class TestTruth:
    def test_the_parser_knows_the_mark(self) -> None:
        assert f"{MARK} " == PREFIX

    def test_a_sleep_is_waiting(self) -> None:
        probe = Probe(0)
        probe.handler(time.sleep)(0.05)
        measured = reported(probe)
        assert measured.t1_seconds + measured.t2_seconds + (measured.run_queue_seconds or 0.0) >= 0.05
        assert measured.t2_seconds < measured.t1_seconds
        assert measured.ended_at is not None

    def test_what_a_function_is_stays(self) -> None:
        def handle(message: str) -> str:
            """Handles."""
            return message.upper()

        measured = Probe().handler(handle)
        assert (measured("a"), measured.__name__, measured.__doc__) == ("A", "handle", "Handles.")

    @pytest.mark.parametrize(
        ("files", "cores"),
        [
            ({}, 1e9),
            ({"proc/self/cgroup": "0::/pod/app\n", "sys/fs/cgroup/pod/app/cpu.max": "max 100000\n"}, 1e9),
            ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "25000 100000\n"}, 0.25),
            # A parent's limit holds for its children; a path that is not there is another namespace's.
            ({"proc/self/cgroup": "0::/pod/app\n", "sys/fs/cgroup/pod/cpu.max": "50000 100000\n"}, 0.5),
            ({"proc/self/cgroup": "0::/../elsewhere\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5),
            ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "nonsense"}, 1e9),
        ],
    )
    def test_cores_are_those_of_the_machine_or_of_the_control_group(
        self, tmp_path: Path, files: dict[str, str], cores: float
    ) -> None:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        assert module.usable_cores(tmp_path) == min(len(os.sched_getaffinity(0)), cores)

    def test_the_report_contains_the_cores(self) -> None:
        probe = Probe(0)
        probe.handler(lambda: None)()
        assert reported(probe).cores == module.usable_cores()

    def test_where_the_run_queue_cannot_be_read_it_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_proc(*_: Any) -> int:
            raise FileNotFoundError

        monkeypatch.setattr(module.os, "open", no_proc)
        probe = Probe(0)
        probe.handler(lambda: None)()
        assert " tq=" not in probe.metadata()
        assert reported(probe).run_queue_seconds is None

    def test_a_kernel_that_does_not_count_is_not_believed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module.os, "pread", lambda *_: b"0 0 0\n")
        probe = Probe(0)
        probe.handler(lambda: None)()
        assert reported(probe).run_queue_seconds is None

    def test_one_thread_without_a_run_queue_makes_the_mean_unknown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        probe = Probe(0)
        handle = probe.handler(lambda: None)
        handle()
        monkeypatch.setattr(module.os, "pread", lambda *_: b"0 0 0\n")
        thread = threading.Thread(target=handle)
        thread.start()
        thread.join()
        monkeypatch.undo()
        assert reported(probe).threads == 2
        assert reported(probe).run_queue_seconds is None

    @pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="there is no schedstat")
    def test_files_of_ended_threads_are_closed(self) -> None:
        probe = Probe(0)
        handle = probe.handler(lambda: None)
        handle()
        before = len(os.listdir("/proc/self/fd"))  # garbage of other tests may go meanwhile
        for _ in range(20):
            thread = threading.Thread(target=handle)
            thread.start()
            thread.join()
        assert reported(probe).messages == 21
        assert len(os.listdir("/proc/self/fd")) <= before

    def test_many_threads_lose_nothing(self) -> None:
        probe = Probe(0)
        handle = probe.handler(lambda: None)
        counted = 0
        with ThreadPoolExecutor(8) as pool:
            for _ in range(20):
                for done in [pool.submit(handle) for _ in range(50)]:
                    done.result()
                counted += reported(probe).messages
        assert counted == 1000


class TestWhatCannotBeMeasured:
    def test_a_coroutine(self) -> None:
        async def handle() -> None: ...

        with pytest.raises(TypeError, match="after the call"):
            Probe().handler(handle)

    def test_a_generator(self) -> None:
        def handle() -> Iterator[int]:
            yield 1

        with pytest.raises(TypeError, match="after the call"):
            Probe().handler(handle)


class TestLock:
    def test_the_wait_is_the_lateness_beyond_the_least(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module._LockMeter, "_run", lambda meter: None)
        meter = module._LockMeter()
        assert meter.seconds((0, 0)) is None
        meter.samples, meter._least = (4, 10 * MS), MS
        assert meter.seconds((0, 0)) == 0.0015
        assert meter.seconds((2, 2 * MS)) == 0.003
        assert meter.seconds((4, 10 * MS)) is None

    def test_a_build_without_the_lock_has_no_meter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_METERS", [])
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        probe = Probe(0)
        probe.handler(lambda: None)()
        assert " tl=" not in probe.metadata()
        assert probe._meter is None


class Partition:
    """A TopicPartition, as far as the probe knows it."""

    def __init__(
        self, topic: str, partition: int, offset: int, metadata: str | None = None, leader_epoch: int | None = None
    ) -> None:
        self.topic, self.partition, self.offset = topic, partition, offset
        self.metadata, self.leader_epoch = metadata, leader_epoch


class Consumer:
    def __init__(self) -> None:
        self.committed: list[Partition] = []

    def commit(self, *, offsets: list[Partition], asynchronous: bool = True) -> str:
        self.committed = offsets
        return "later" if asynchronous else "done"


class TestCommit:
    def test_the_text_comes_with_the_offset(self) -> None:
        probe, consumer = Probe(0), Consumer()
        probe.handler(lambda: None)()
        assert probe.commit(consumer, offsets=[Partition("t", 3, 7, leader_epoch=2)], asynchronous=False) == "done"
        [one] = consumer.committed
        assert (one.topic, one.partition, one.offset, one.leader_epoch) == ("t", 3, 7, 2)
        assert one.metadata == probe.metadata() != ""

    def test_metadata_of_other_programs_is_kept(self) -> None:
        probe, consumer = Probe(0), Consumer()
        probe.handler(lambda: None)()
        probe.commit(
            consumer, offsets=[Partition("t", 0, 7, "checkpoint 9"), Partition("t", 1, 7, "lw1 t1=1 t2=2 n=3")]
        )
        assert [one.metadata for one in consumer.committed] == ["checkpoint 9", probe.metadata()]

    def test_before_anything_is_measured_there_is_no_text(self) -> None:
        consumer = Consumer()
        Probe().commit(consumer, offsets=[Partition("t", 0, 7)])
        assert [one.metadata for one in consumer.committed] == [None]

    def test_nothing_to_commit_is_a_mistake(self) -> None:
        with pytest.raises(TypeError, match="a message or offsets"):
            Probe().commit(Consumer())


def in_child(script: str) -> str:
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


class TestProcesses:
    pytestmark = pytest.mark.process

    def test_nothing_else_of_lagwise_is_imported(self) -> None:
        script = "import sys, lagwise.probe; print(*sorted(m for m in sys.modules if m.startswith('lagwise')))"
        assert in_child(script) == "lagwise lagwise.probe"

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_the_child_of_a_fork_starts_from_zero(self) -> None:
        script = """
import os, sys
from lagwise.probe import Probe
probe = Probe(0)
handle = probe.handler(lambda: None)
handle()
handle()
if os.fork() == 0:
    assert probe.metadata() == ""
    handle()
    print("child", probe.metadata(), flush=True)
    os._exit(0)
_, status = os.wait()
assert status == 0
print("parent", probe.metadata())
"""
        child, parent = in_child(script).splitlines()
        assert child.startswith("child lw1 ") and " n=1 " in child
        assert parent.startswith("parent lw1 ") and " n=2 " in parent

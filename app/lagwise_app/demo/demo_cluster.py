"""The cluster that the demo watches, Kafka or RocketMQ: its broker, the workload on it, and the expected statuses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lagwise_app.demo.progress import DemoProgress
from lagwise_app.terminal.signals import Signals

if TYPE_CHECKING:
    from lagwise_sandbox.scenarios import DemoScenario

CLUSTER_NAME = "shop"


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """A running broker with its workload.

    ``settings`` is its entry under ``clusters``. ``stop_workload`` ends the workload, which logs to ``log_file``.
    """

    scenarios: "Sequence[DemoScenario]"
    settings: Mapping[str, Any]
    is_broker_alive: Callable[[], bool]
    is_workload_alive: Callable[[], bool]
    log_file: Path
    stop_workload: Callable[[], None]


@contextmanager
def kafka_cluster(
    signals: Signals, progress: DemoProgress, folder: Path, before_workload: Callable[[], None]
) -> Iterator[DemoCluster]:
    """A Kafka broker with producers and consumers, started when ``before_workload`` has returned. Leaving the context
    ends all of them."""
    from lagwise_sandbox.broker import KafkaBroker
    from lagwise_sandbox.scenarios import SCENARIOS
    from lagwise_sandbox.workloads import DemoWorkload

    broker = KafkaBroker()
    workload: DemoWorkload | None = None
    try:
        with signals.interrupting(), progress.step("starting a Kafka broker") as step:
            broker.start(step)
            step.result = f"Kafka broker at {broker.bootstrap}"
        before_workload()
        workload = DemoWorkload(broker.bootstrap, folder / "logs")
        workload.start()
        settings = {"bootstrap": broker.bootstrap, "offsets_topic": True}
        yield DemoCluster(SCENARIOS, settings, broker.alive, workload.alive, workload.log_file, workload.stop)
    finally:
        if workload is not None:
            workload.stop()
        broker.kill()  # its data is thrown away, so a graceful end would only take time
        broker.stop()


@contextmanager
def rocketmq_cluster(
    signals: Signals, progress: DemoProgress, folder: Path, before_workload: Callable[[], None]
) -> Iterator[DemoCluster]:
    """A RocketMQ name server and broker with producers and consumers, started when ``before_workload`` has returned.
    Leaving the context ends all of them."""
    from lagwise_sandbox.rocketmq.scenarios import SCENARIOS, SPECS
    from lagwise_sandbox.rocketmq.servers import Rocketmq
    from lagwise_sandbox.rocketmq.workload import RocketmqWorkload

    del folder  # the workload logs into the temporary folder of the servers
    rocketmq = Rocketmq()
    workload: RocketmqWorkload | None = None
    try:
        with signals.interrupting(), progress.step("starting a RocketMQ name server and broker") as step:
            rocketmq.start(step)
            step.result = f"RocketMQ name server at {rocketmq.name_servers}"
        before_workload()
        with signals.interrupting(), progress.step("starting consumers"):
            workload = RocketmqWorkload(rocketmq, SPECS)
            workload.start()
        settings = {"system": "rocketmq", "name_servers": rocketmq.name_servers}
        yield DemoCluster(SCENARIOS, settings, rocketmq.alive, workload.alive, workload.log_file, workload.stop)
    finally:
        if workload is not None:
            workload.stop()
        rocketmq.stop()

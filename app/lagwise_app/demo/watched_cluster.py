"""What the demo watches: a broker, what happens on it, and what that should be shown as. Of Kafka or of RocketMQ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lagwise_app.demo.progress import DemoProgress
from lagwise_app.demo.signals import Signals

if TYPE_CHECKING:
    from lagwise_sandbox.scenarios import DemoScenario

CLUSTER = "shop"


@dataclass(frozen=True, slots=True)
class Cast:
    """``cluster`` is how the settings reach it; ``leave`` ends the workload, which writes to ``log_file``."""

    scenarios: "Sequence[DemoScenario]"
    cluster: Mapping[str, Any]
    broker_lives: Callable[[], bool]
    workload_lives: Callable[[], bool]
    log_file: Path
    leave: Callable[[], None]


@contextmanager
def kafka_cast(signals: Signals, stage: DemoProgress, folder: Path) -> Iterator[Cast]:
    """A Kafka broker with producers and consumers, ended at the end."""
    from lagwise_sandbox.broker import KafkaBroker
    from lagwise_sandbox.scenarios import SCENARIOS
    from lagwise_sandbox.workloads import DemoWorkload

    broker = KafkaBroker()
    workload: DemoWorkload | None = None
    try:
        with signals.interrupting(), stage.step("starting a Kafka broker") as step:
            broker.start(step)
            step.result = f"Kafka broker at {broker.bootstrap}"
        workload = DemoWorkload(broker.bootstrap, folder / "logs")
        workload.start()
        cluster = {"bootstrap": broker.bootstrap, "offsets_topic": True}
        yield Cast(SCENARIOS, cluster, broker.alive, workload.alive, workload.log_file, workload.stop)
    finally:
        if workload is not None:
            workload.stop()
        broker.kill()  # nothing of it is kept, so there is nothing to end gracefully …
        broker.stop()  # … only to be removed


@contextmanager
def rocketmq_cast(signals: Signals, stage: DemoProgress, folder: Path) -> Iterator[Cast]:
    """A RocketMQ name server and broker with producers and consumers, ended at the end."""
    from lagwise_sandbox.rocketmq.scenarios import SCENARIOS, SPECS
    from lagwise_sandbox.rocketmq.servers import Rocketmq
    from lagwise_sandbox.rocketmq.workload import RocketmqWorkload

    del folder  # what they write goes with them
    rocketmq = Rocketmq()
    workload: RocketmqWorkload | None = None
    try:
        with signals.interrupting(), stage.step("starting a RocketMQ name server and broker") as step:
            rocketmq.start(step)
            step("starting consumers")
            workload = RocketmqWorkload(rocketmq, SPECS)
            workload.start()
            step.result = f"RocketMQ name server at {rocketmq.name_servers}"
        cluster = {"system": "rocketmq", "name_servers": rocketmq.name_servers}
        yield Cast(SCENARIOS, cluster, rocketmq.alive, workload.alive, workload.log_file, workload.stop)
    finally:
        if workload is not None:
            workload.stop()
        rocketmq.stop()

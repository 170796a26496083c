"""The demonstration from its first step to its last line."""

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lagwise.config import Config, SparkSettings
from lagwise.links.first_commands import shell_word
from lagwise.platform.errors import LagwiseError
from lagwise.platform.program import program
from lagwise.tables.store import Lake
from lagwise_app.demo.expectations import Watch
from lagwise_app.demo.folder import demo_folder
from lagwise_app.demo.memory_use import MemoryUse
from lagwise_app.demo.progress import DemoProgress
from lagwise_app.demo.report import DemoOutcome, document
from lagwise_app.demo.signals import Interrupted, Signals
from lagwise_app.demo.watched_cluster import CLUSTER, Cast, kafka_cast, rocketmq_cast
from lagwise_app.demo.webhook_receiver import Receiver
from lagwise_app.supervisor.effective_settings import dashboard_address, with_dashboard_port
from lagwise_app.supervisor.processes import running_product
from lagwise_app.supervisor.supervisor import Supervisor
from lagwise_app.terminal import lake_queries

#: Where the key of the webhook's signatures lies: in a file, so that `lagwise doctor` of another terminal finds it.
_KEY_FILE = "webhook.key"
_LOOK_SECONDS = 0.25
_READ_SECONDS = 1.0
_MEMORY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for; ``spark`` is taken from the settings, everything else of theirs is not."""

    for_seconds: float | None
    dashboard: bool
    data: Path | None
    port: int
    as_json: bool
    rocketmq: bool = False
    spark: SparkSettings = field(default_factory=SparkSettings)


def run_demo(options: Options, signals: Signals) -> int:
    """Run the demo. Returns the exit code: 0 where all groups ended as expected, or the user ended an open-ended run.

    Raises LagwiseError where it cannot run (no Java, no jars, a port that is taken, a broker that dies).
    """
    stage = DemoProgress(as_json=options.as_json)
    began = time.monotonic()
    try:
        secret = secrets.token_hex(16)
        with demo_folder(options.data, stage.say) as folder, Receiver(secret) as receiver:
            (folder.path / _KEY_FILE).touch(mode=0o600)
            (folder.path / _KEY_FILE).write_text(secret, encoding="ascii")
            outcome = _play(options, signals, stage, folder.path, receiver)
            folder.keep = folder.keep or not (outcome.watch.all_agree or options.for_seconds is None)
    except Interrupted:
        stage.say("ended before the show began")
        return 1
    result = document(outcome, wall_seconds=time.monotonic() - began)
    if options.as_json:
        from lagwise_app.terminal.json_output import print_json

        print_json(result)
    else:
        stage.say(result["summary"])
    ended_by_user = options.for_seconds is None and signals.stop.is_set()
    return 0 if result["ok"] or ended_by_user else 1


def _play(options: Options, signals: Signals, stage: DemoProgress, folder: Path, receiver: Receiver) -> DemoOutcome:
    """Start everything, show it until the time is over or a signal comes, end everything."""
    with (rocketmq_cast if options.rocketmq else kafka_cast)(signals, stage, folder) as cast:
        config = _settings(options, cast.cluster, folder, receiver.url)
        with running_product(config, dashboard=options.dashboard) as supervisor:
            if options.dashboard:
                stage.say(f"dashboard: {dashboard_address(config.dashboard.host, config.dashboard.port)}")
            stage.say(f"ask it from another terminal: {program()} status --data {shell_word(config.data)}")
            show = _Show(options, signals, stage, config, supervisor, receiver, cast)
            with stage.live():
                show.run()
            outcome = show.outcome()
            # The workload takes a moment to say goodbye: let it, while the product's parts do the same.
            ending = threading.Thread(target=cast.leave, name="workload's end")
            ending.start()
        ending.join()
    return outcome


def _settings(options: Options, cluster: Mapping[str, Any], folder: Path, webhook: str) -> Config:
    return with_dashboard_port(
        Config.model_validate(
            {
                "data": str(folder),
                "clusters": [{"name": CLUSTER, "interval_seconds": 3, **cluster}],
                "analysis": {
                    "interval_seconds": 10,
                    "minimum_span_seconds": 30,
                    "spark": options.spark.model_dump(exclude_unset=True),
                },
                "alerts": {
                    "interval_seconds": 2,
                    "channels": [{"name": "demo", "url": webhook, "secret": f"${{file:{folder / _KEY_FILE}}}"}],
                    "grouping": {"max_messages": None},  # a line for each: the groups get into trouble all at once
                },
                "dashboard": {"port": options.port, "refresh_seconds": 5},
            }
        )
    )


class _Show:
    """The time between the start of everything and its end."""

    def __init__(
        self,
        options: Options,
        signals: Signals,
        stage: DemoProgress,
        config: Config,
        supervisor: Supervisor,
        receiver: Receiver,
        cast: Cast,
    ) -> None:
        self._options, self._signals, self._stage = options, signals, stage
        self._supervisor, self._receiver, self._cast = supervisor, receiver, cast
        self._lake = Lake(config.lake_uri)
        self._watch = Watch(cast.scenarios)
        self._memory = MemoryUse()
        self._started_at = datetime.now(UTC)
        self._began = time.monotonic()

    def run(self) -> None:
        """Watch and show until the time is over or a signal comes. Raises LagwiseError where broker or load die."""
        read_at = memory_at = 0.0
        footer = "" if self._options.for_seconds else "Ctrl-C ends all of it."
        while not self._signals.stop.wait(_LOOK_SECONDS):
            elapsed = time.monotonic() - self._began
            self._supervisor.step()
            for line in self._supervisor.take_notices():
                self._stage.say(line)
            self._check_alive()
            if elapsed >= read_at:
                read_at = elapsed + _READ_SECONDS
                self._watch.see(lake_queries.groups(self._lake), elapsed)
                parts, alerts = self._supervisor.statuses(), self._receiver.received()
                self._stage.show(self._watch, elapsed, parts, alerts, footer)
            if elapsed >= memory_at:
                memory_at = elapsed + _MEMORY_SECONDS
                self._memory.look(self._supervisor.pids())
            if self._options.for_seconds is not None and elapsed >= self._options.for_seconds:
                return

    def outcome(self) -> DemoOutcome:
        """Everything as it stands now."""
        elapsed = time.monotonic() - self._began
        self._watch.see(lake_queries.groups(self._lake), elapsed)
        return DemoOutcome(
            watch=self._watch,
            changes=lake_queries.status_changes(self._lake),
            started_at=self._started_at,
            run_seconds=elapsed,
            parts=self._supervisor.statuses(),
            memory=self._memory,
            alerts=self._receiver.received(),
        )

    def _check_alive(self) -> None:
        if not self._cast.broker_lives():
            raise LagwiseError("the demo's broker died; is there enough memory?")
        if not self._cast.workload_lives():
            raise LagwiseError(f"the demo's workload died: see {self._cast.log_file}")

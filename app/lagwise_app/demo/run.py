"""The demo from its first step to its last line."""

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
from lagwise_app.demo.demo_cluster import CLUSTER_NAME, DemoCluster, kafka_cluster, rocketmq_cluster
from lagwise_app.demo.expectations import ExpectedGroups
from lagwise_app.demo.folder import demo_folder
from lagwise_app.demo.memory_use import MemoryUse
from lagwise_app.demo.progress import DemoProgress
from lagwise_app.demo.report import DemoOutcome, document
from lagwise_app.demo.webhook_receiver import WebhookReceiver
from lagwise_app.supervisor.effective_settings import dashboard_address, with_dashboard_port
from lagwise_app.supervisor.processes import running_product
from lagwise_app.supervisor.supervisor import ProcessStatus, Supervisor
from lagwise_app.terminal import lake_queries
from lagwise_app.terminal.signals import Interrupted, Signals

#: The file with the key of the webhook's signatures. In a file, `lagwise doctor` in another terminal can read it too.
_KEY_FILE = "webhook.key"
_STEP_SECONDS = 0.25
_READ_SECONDS = 1.0
_MEMORY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of the command. ``spark`` is the only part of the settings that the demo uses."""

    for_seconds: float | None
    dashboard: bool
    data: Path | None
    port: int
    as_json: bool
    rocketmq: bool
    spark: SparkSettings


def run_demo(options: DemoOptions, signals: Signals) -> int:
    """Run the demo. Returns the exit code: 0 where every group ended as expected, or where the user ended the run.

    Raises LagwiseError where it cannot run: no Java, no jars, a port in use, a broker that dies.
    """
    progress = DemoProgress(as_json=options.as_json)
    began = time.monotonic()
    try:
        secret = secrets.token_hex(16)
        with demo_folder(options.data, progress.say) as folder, WebhookReceiver(secret) as receiver:
            (folder.path / _KEY_FILE).touch(mode=0o600)
            (folder.path / _KEY_FILE).write_text(secret, encoding="ascii")
            outcome = _run_on_cluster(options, signals, progress, folder.path, receiver)
            folder.keep = folder.keep or not (outcome.expected.all_agree or options.for_seconds is None)
    except Interrupted:
        progress.say("stopped before everything was started")
        return 1
    result = document(outcome, wall_seconds=time.monotonic() - began)
    if options.as_json:
        from lagwise_app.terminal.json_output import print_json

        print_json(result)
    else:
        progress.say(result["summary"])
    ended_by_user = options.for_seconds is None and signals.stop.is_set()
    return 0 if result["ok"] or ended_by_user else 1


def _run_on_cluster(
    options: DemoOptions, signals: Signals, progress: DemoProgress, folder: Path, receiver: WebhookReceiver
) -> DemoOutcome:
    """Start everything, show it until the time is up or a signal comes, and end everything."""
    with (rocketmq_cluster if options.rocketmq else kafka_cluster)(signals, progress, folder) as cluster:
        config = _settings(options, cluster.settings, folder, receiver.url)
        with running_product(config, dashboard=options.dashboard) as supervisor:
            if options.dashboard:
                progress.say(f"dashboard: {dashboard_address(config.dashboard.host, config.dashboard.port)}")
            progress.say(f"from another terminal: {program()} status --data {shell_word(config.data)}")
            run = _DemoRun(
                options=options,
                signals=signals,
                progress=progress,
                supervisor=supervisor,
                receiver=receiver,
                cluster=cluster,
                lake=Lake(config.lake_uri),
                expected=ExpectedGroups(cluster.scenarios),
            )
            with progress.live():
                run.run()
            processes = supervisor.statuses()
            supervisor.ask_to_end()
            outcome = run.outcome(processes)
            # The workload takes a moment to leave its groups. It does so while the product ends.
            ending = threading.Thread(target=cluster.stop_workload, name="workload-end")
            ending.start()
        ending.join()
    return outcome


def _settings(options: DemoOptions, cluster: Mapping[str, Any], folder: Path, webhook: str) -> Config:
    return with_dashboard_port(
        Config.model_validate(
            {
                "data": str(folder),
                "clusters": [{"name": CLUSTER_NAME, "interval_seconds": 3, **cluster}],
                "analysis": {
                    "interval_seconds": 5,
                    "minimum_span_seconds": 30,
                    "spark": options.spark.model_dump(exclude_unset=True),
                },
                "alerts": {
                    "interval_seconds": 2,
                    "channels": [{"name": "demo", "url": webhook, "secret": f"${{file:{folder / _KEY_FILE}}}"}],
                    # One message per group, although all groups get into trouble at once.
                    "grouping": {"max_messages": None},
                },
                "dashboard": {"port": options.port, "refresh_seconds": 5},
            }
        )
    )


@dataclass(slots=True, kw_only=True)
class _DemoRun:
    """A running demo: its steps, and what they have found."""

    options: DemoOptions
    signals: Signals
    progress: DemoProgress
    supervisor: Supervisor
    receiver: WebhookReceiver
    cluster: DemoCluster
    lake: Lake
    expected: ExpectedGroups
    memory: MemoryUse = field(default_factory=MemoryUse)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Step until the time is up or a signal comes. Raises LagwiseError where the broker or the workload dies."""
        read_at = memory_at = 0.0
        footer = "" if self.options.for_seconds else "Ctrl-C ends everything."
        while not self.signals.stop.wait(_STEP_SECONDS):
            elapsed = time.monotonic() - self.began
            self.supervisor.step()
            for line in self.supervisor.take_notices():
                self.progress.say(line)
            self._check_alive()
            if elapsed >= read_at:
                read_at = elapsed + _READ_SECONDS
                self.expected.update(lake_queries.groups(self.lake), elapsed)
                processes, alerts = self.supervisor.statuses(), self.receiver.received()
                self.progress.show(self.expected, elapsed, processes, alerts, footer)
            if elapsed >= memory_at:
                memory_at = elapsed + _MEMORY_SECONDS
                self.memory.measure(self.supervisor.pids())
            if self.options.for_seconds is not None and elapsed >= self.options.for_seconds:
                return

    def outcome(self, processes: list[ProcessStatus]) -> DemoOutcome:
        """The state of everything now; ``processes`` as they were before they were asked to end."""
        elapsed = time.monotonic() - self.began
        self.expected.update(lake_queries.groups(self.lake), elapsed)
        return DemoOutcome(
            expected=self.expected,
            changes=lake_queries.status_changes(self.lake),
            started_at=self.started_at,
            run_seconds=elapsed,
            processes=processes,
            memory=self.memory,
            alerts=self.receiver.received(),
        )

    def _check_alive(self) -> None:
        if not self.cluster.is_broker_alive():
            raise LagwiseError("the demo's broker died; is the machine short of memory?")
        if not self.cluster.is_workload_alive():
            raise LagwiseError(f"the demo's workload died; its log is {self.cluster.log_file}")

"""The demo from its first step to its last line."""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lagwise.config import Config, SparkSettings
from lagwise.domain.humanise import plural
from lagwise.links.first_commands import shell_word
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.program import program
from lagwise.tables.store import Lake
from lagwise_app.demo.demo_cluster import CLUSTER_NAME, DemoCluster, kafka_cluster, rocketmq_cluster
from lagwise_app.demo.expectations import ExpectedGroups
from lagwise_app.demo.folder import demo_folder
from lagwise_app.demo.memory_use import MemoryUse
from lagwise_app.demo.progress import DemoProgress
from lagwise_app.demo.report import DemoOutcome, JudgedPast, document
from lagwise_app.demo.webhook_receiver import WebhookReceiver
from lagwise_app.supervisor.effective_settings import EFFECTIVE_SETTINGS, dashboard_address, with_dashboard_port
from lagwise_app.supervisor.processes import running_product
from lagwise_app.supervisor.supervisor import ProcessStatus, Supervisor
from lagwise_app.terminal import lake_queries
from lagwise_app.terminal.signals import Interrupted, Signals
from lagwise_sandbox.made_up import groups as made_up

if TYPE_CHECKING:
    from lagwise_app.demo.made_up.cluster import MadeUpCluster

#: The file with the key of the webhook's signatures. In a file, `lagwise doctor` in another terminal can read it too.
_KEY_FILE = "webhook.key"
#: What the groups did is kept for so long: more than the week of a chart and the week before, its faint line.
_LAKE = {"retention": {"minute_stats_days": 15}}
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
    past: bool
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
        progress.show_end(outcome.expected)
        progress.say(result["summary"])
    if options.data is not None:
        progress.say(_look_again(options.data))
    ended_by_user = options.for_seconds is None and signals.stop.is_set()
    return 0 if result["ok"] or ended_by_user else 1


def _look_again(data: Path) -> str:
    """Where the data is, and how to look at it when the demo has ended: with its own settings, which have the note on
    what is made up."""
    settings = shell_word(str(data.resolve() / EFFECTIVE_SETTINGS))
    return (
        f"the data is kept in {data.resolve()}; to look at it again: {program()} --config {settings} dashboard "
        "(nothing is collected any more, so its pages call it stale)"
    )


def _run_on_cluster(
    options: DemoOptions, signals: Signals, progress: DemoProgress, folder: Path, receiver: WebhookReceiver
) -> DemoOutcome:
    """Start everything, show it until the time is up or a signal comes, and end everything."""
    cluster_of = rocketmq_cluster if options.rocketmq else kafka_cluster
    with (
        _past(options, folder) as past,
        cluster_of(signals, progress, folder, partial(past.wait, signals, progress)) as cluster,
    ):
        config = _settings(options, cluster.settings, folder, receiver.url)
        with running_product(config, dashboard=options.dashboard) as supervisor:
            if options.dashboard:
                progress.say(f"dashboard: {dashboard_address(config.dashboard.host, config.dashboard.port)}")
            # Of the real cluster alone, so that it counts the groups that are counted here.
            status = f"{program()} status --cluster {CLUSTER_NAME} --data {shell_word(config.data)}"
            progress.say(f"from another terminal: {status}")
            if options.past and options.dashboard:
                made = f"{plural(len(made_up.GROUPS), 'group')} of the cluster {made_up.CLUSTER_NAME}"
                progress.say(f"the dashboard also has {made}, whose samples are invented")
            run = _DemoRun(
                options=options,
                signals=signals,
                progress=progress,
                supervisor=supervisor,
                receiver=receiver,
                cluster=cluster,
                lake=Lake(config.lake_uri),
                expected=ExpectedGroups(cluster.scenarios),
                past=past,
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


@dataclass(slots=True)
class _Past:
    """The past of the made-up cluster, if there is one."""

    cluster: "MadeUpCluster | None" = None
    judged: JudgedPast | None = None

    def wait(self, signals: Signals, progress: DemoProgress) -> None:
        """Wait until it has been judged. Raises LagwiseError where that failed."""
        if self.cluster is None:
            return
        with signals.interrupting(), progress.step("judging five weeks of made-up samples") as step:
            self.judged = JudgedPast(made_up.CLUSTER_NAME, self.cluster.await_judged(step))
            step.result = f"five weeks of made-up samples judged: the cluster {made_up.CLUSTER_NAME}"

    def check(self) -> None:
        """Raises LagwiseError where the made-up cluster takes no more samples."""
        if self.cluster is not None:
            self.cluster.check()


@contextmanager
def _past(options: DemoOptions, folder: Path) -> Iterator[_Past]:
    """The past that is wanted, begun. Leaving the context ends the made-up cluster."""
    if not options.past:
        yield _Past()
        return
    from lagwise_app.demo.made_up.cluster import MadeUpCluster

    config = Config.model_validate({"data": str(folder), "lake": _LAKE, "analysis": _analysis(options)})
    with MadeUpCluster(config, datetime.now(UTC)) as cluster:
        yield _Past(cluster)


def _analysis(options: DemoOptions) -> dict[str, Any]:
    return {
        "interval_seconds": 5,
        "minimum_span_seconds": 30,
        "spark": options.spark.model_dump(exclude_unset=True),
    }


def _settings(options: DemoOptions, cluster: Mapping[str, Any], folder: Path, webhook: str) -> Config:
    return with_dashboard_port(
        Config.model_validate(
            {
                "data": str(folder),
                "lake": _LAKE,
                # Alerts watch these clusters only: nobody is notified of made-up groups.
                "clusters": [{"name": CLUSTER_NAME, "interval_seconds": 3, **cluster}],
                "analysis": _analysis(options),
                "alerts": {
                    "interval_seconds": 2,
                    "channels": [{"name": "demo", "url": webhook, "secret": f"${{file:{folder / _KEY_FILE}}}"}],
                    # One message per group, although all groups get into trouble at once.
                    "grouping": {"max_messages": None},
                },
                "dashboard": {
                    "port": options.port,
                    "refresh_seconds": 5,
                    "cluster_notes": {made_up.CLUSTER_NAME: made_up.NOTE} if options.past else {},
                },
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
    past: _Past
    memory: MemoryUse = field(default_factory=MemoryUse)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Step until the time is up or a signal comes. Raises LagwiseError where the broker or the workload dies, or
        the made-up cluster takes no more samples."""
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
                self.expected.update(self._groups(), elapsed)
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
        self.expected.update(self._groups(), elapsed)
        return DemoOutcome(
            expected=self.expected,
            changes=[row for row in lake_queries.status_changes(self.lake) if row["cluster"] == CLUSTER_NAME],
            started_at=self.started_at,
            run_seconds=elapsed,
            processes=processes,
            memory=self.memory,
            alerts=self.receiver.received(),
            past=self.past.judged,
        )

    def _groups(self) -> list[dict[str, Any]]:
        return [row for row in lake_queries.groups(self.lake) if row["cluster"] == CLUSTER_NAME]

    def _check_alive(self) -> None:
        if not self.cluster.is_broker_alive():
            raise LagwiseError("the demo's broker died; is the machine short of memory?", code=ErrorCode.PROCESS_FAILED)
        if not self.cluster.is_workload_alive():
            raise LagwiseError(
                f"the demo's workload died; its log is {self.cluster.log_file}", code=ErrorCode.PROCESS_FAILED
            )
        self.past.check()

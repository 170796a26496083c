"""The checks of the machine and of everything in the settings. Each reports what it found, with advice where needed."""

import contextlib
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from lagwise.config import Config
from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.errors import LagwiseError, with_code
from lagwise.platform.private_files import is_open_to_others
from lagwise_app.doctor.collector_check import check_collectors
from lagwise_app.doctor.diagnosis import Diagnosis, failed, ok, removed_afterwards, warning
from lagwise_app.doctor.lake_check import check_lake
from lagwise_app.supervisor.effective_settings import child_environment

if TYPE_CHECKING:
    from lagwise_collectors.protocol import Check

_GIB = 1024**3
#: What all processes take together with a cluster like the demo's (docs/benchmarks.md, "The demo"), and what of it is
#: not the heap of Spark's JVM, which has 0.3 GiB then.
_OF_A_SMALL_CLUSTER = int(1.4 * _GIB)
_WITHOUT_HEAP = int(1.1 * _GIB)
_SPARK_SECONDS = 300.0

_Check = Callable[[Config], Iterator[Diagnosis]]


def diagnoses(
    config: Config, *, start_spark: bool = True, progress: Callable[[str], None] = lambda _what: None
) -> Iterator[Diagnosis]:
    """Run every check, cheap ones first. An exception in a check is a failed check, and the others still run.

    ``progress`` is called before each check. ``start_spark`` starts Spark, which takes 5 to 30 s.
    """
    checks: list[tuple[str, _Check]] = [
        ("Java", _java),
        ("packages", _packages),
        ("memory", _memory),
        ("disk", _disk),
        ("state folder", _state_folder),
        ("lake", check_lake),
        ("database", _database),
        ("versions", _versions),
        ("alerts", _alerts),
        ("dashboard", _dashboard),
        ("clusters", _clusters),
        ("collectors", check_collectors),
    ]
    if start_spark:
        checks.append(("Spark (takes a while)", _spark))
    for name, check in checks:
        progress(f"checking {name}")
        try:
            yield from check(config)
        except LagwiseError as error:
            yield failed(name, with_code(str(error), error.code))
        except Exception as error:  # an unexpected error is a finding too
            yield failed(name, f"{type(error).__name__}: {error}")


def _java(_config: Config) -> Iterator[Diagnosis]:
    from lagwise.platform.java import find_java

    java = find_java()  # raises with advice where there is none, or an old one
    said = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    shown = next((line for line in said.splitlines() if "version" in line), "runs")
    yield ok("Java", f"{shown} ({java})")


def _packages(_config: Config) -> Iterator[Diagnosis]:
    for package, extra, needed_for in (
        ("confluent-kafka", "kafka", "collecting from Kafka"),
        ("pyspark", "spark", "the analysis"),
        ("streamlit", "dashboard", "the dashboard"),
    ):
        try:
            yield ok(package, version(package))
        except PackageNotFoundError:
            yield warning(package, f"not installed; needed for {needed_for}", f"pip install 'lagwise[{extra}]'")


def _memory(config: Config) -> Iterator[Diagnosis]:
    available = psutil.virtual_memory().available
    # The driver runs here, whatever the master is.
    most = _WITHOUT_HEAP + _bytes(config.analysis.spark.driver_memory)
    found = (
        f"{available / _GIB:.1f} GiB available; everything takes about {_OF_A_SMALL_CLUSTER / _GIB:.1f} GiB for a "
        f"small cluster, and up to {most / _GIB:.1f} GiB if Spark's heap fills"
    )
    if available >= most:
        yield ok("memory", found)
    else:
        yield warning("memory", found, "free some memory, or lower analysis.spark.driver_memory")


def _disk(config: Config) -> Iterator[Diagnosis]:
    places = {"state folder": config.state, "temporary files": Path(tempfile.gettempdir())}
    if not config.data_is_remote:
        places["lake"] = Path(config.lake_uri)
    for what, place in places.items():
        existing = next(folder for folder in (place, *place.parents) if folder.exists())
        free = psutil.disk_usage(str(existing)).free
        found = f"{free / _GIB:.1f} GiB free for {what} ({place})"
        if free >= 5 * _GIB:
            yield ok("disk", found)
        else:
            diagnosis = warning if free >= _GIB / 4 else failed
            yield diagnosis("disk", found, "free some space, or move it to another disk (`data`)")


def _state_folder(config: Config) -> Iterator[Diagnosis]:
    shown = str(config.state)
    if not config.state.exists():
        yield ok("state folder", f"{shown} will be created with access for this account only")
    elif is_open_to_others(config.state):
        found = f"other accounts on this machine can list {shown} (they cannot read logs or database)"
        yield warning("state folder", found, f"chmod 700 {shlex.quote(shown)}")
    else:
        yield ok("state folder", f"other accounts cannot open {shown}")


def _database(config: Config) -> Iterator[Diagnosis]:
    from lagwise.platform.errors import DatabaseError
    from lagwise_alerts.outbox.database import open_engine, sqlite_file, try_out

    engine = open_engine(config.database_url)
    file = sqlite_file(engine)
    probe = None if file is None or file.exists() else file.parent / ".lagwise-doctor" / file.name
    tried = engine if probe is None else open_engine(f"sqlite:///{probe}")
    try:
        with contextlib.nullcontext() if probe is None else removed_afterwards(probe.parent):
            try_out(tried)
            tried.dispose()
    except DatabaseError as error:
        yield failed("database", str(error), "check `database` in the settings and its permissions")
        return
    finally:
        tried.dispose()
    shown = engine.url.render_as_string(hide_password=True)
    yield ok("database", f"{shown} can be {'written' if probe is None else 'created'}")


def _versions(config: Config) -> Iterator[Diagnosis]:
    from lagwise.operational.engine import open_engine
    from lagwise.operational.migrate import NEWEST, database_version
    from lagwise.tables.migrate import plan_of
    from lagwise.tables.store import Lake

    plan = plan_of(Lake(config.lake_uri, config.lake.resolved_storage_options()))
    engine = open_engine(config.database_url)
    try:
        version = database_version(engine)
    finally:
        engine.dispose()
    lake = "none yet" if plan.version is None else f"{plan.version} (newest {plan.newest})"
    found = f"lake {lake}, database {'none yet' if version is None else f'{version} (newest {NEWEST})'}"
    if not plan.is_up_to_date or version not in (None, NEWEST):
        advice = "the next start migrates; `lagwise migrate --dry-run` says what it does"
        yield warning("versions", found, advice)
    else:
        yield ok("versions", found)


def _alerts(config: Config) -> Iterator[Diagnosis]:
    from lagwise.config.load import resolve_everything
    from lagwise_alerts.operate import test_message
    from lagwise_alerts.rules.rule_file import load_rules

    resolve_everything(config)
    channels = config.alerts.channels
    rules = len(load_rules(config.alerts.rules_file, [channel.name for channel in channels]).rules)
    broken = list(test_message.unusable_channels(config))
    for channel, problem in broken:
        advice = f"check the channel {channel.name} ({channel.type}) under alerts.channels"
        yield failed("alerts", f"channel {channel.name}: {problem}", advice)
    if channels and not broken:
        receivers = ", ".join(f"{channel.name} ({channel.type})" for channel in channels)
        yield ok("alerts", f"{rules} rules; receivers: {receivers}; all secrets resolve")
    elif not channels:
        yield warning("alerts", "no receiver: alerts are shown, but not sent", "add one under alerts.channels")


def _dashboard(config: Config) -> Iterator[Diagnosis]:
    import socket

    from lagwise.config.auth_file import check_auth_file

    if config.dashboard.sign_in is not None:
        check_auth_file(config.dashboard.sign_in.auth_file)
    host, port = config.dashboard.host, config.dashboard.port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            found = f"cannot listen on {host}:{port} ({error.strerror})"
            advice = "choose another dashboard.port, unless the dashboard already runs there"
            yield warning("dashboard", found, advice)
            return
    yield ok("dashboard", f"{host}:{port} is free")


def _clusters(config: Config) -> Iterator[Diagnosis]:
    if not config.clusters:
        advice = "add --bootstrap HOST:PORT, or `clusters` in the settings"
        yield warning("clusters", "no cluster in the settings", advice)
        return
    from lagwise_collectors.run import check_access

    for cluster in config.clusters:
        try:
            for found in check_access(cluster):
                yield _access(cluster.name, found)
        except LagwiseError as error:
            advice = f"check the settings of the cluster {cluster.name}: bootstrap and librdkafka"
            yield failed(f"cluster {cluster.name}", with_code(str(error), error.code), advice)


def _spark(config: Config) -> Iterator[Diagnosis]:
    """Start Spark in a child process: the JVM writes to its parent's output and lives as long as its parent."""
    from lagwise_app.supervisor.effective_settings import write_settings

    with tempfile.TemporaryDirectory(prefix="lagwise-doctor-") as folder:
        settings = write_settings(config.model_copy(update={"state_dir": Path(folder)}))
        command = [sys.executable, "-P", "-m", "lagwise_app.doctor.spark_check"]
        try:
            ran = subprocess.run(
                dying_with_parent(command),
                env=child_environment(settings),
                capture_output=True,
                text=True,
                timeout=_SPARK_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            yield failed("Spark", f"did not start within {_SPARK_SECONDS:.0f} s", "check analysis.spark.master")
            return
    if ran.returncode == 0:
        answer = json.loads(ran.stdout.strip().splitlines()[-1])
        yield ok("Spark", f"{answer['version']} started in {answer['seconds']:.0f} s and did a job")
    else:
        last = (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]
        yield failed("Spark", last, "check Java and memory above; --debug shows more")


def _access(cluster: str, found: "Check") -> Diagnosis:
    check = f"cluster {cluster}: {found.name}"
    if found.ok:
        return ok(check, found.detail)
    advice = f"{found.advice or 'grant it'} (needs {found.privilege})" if found.privilege else found.advice
    return (failed if found.required else warning)(check, found.detail, advice)


def _bytes(memory: str) -> int:
    """Spark's ``512m`` or ``1g`` in bytes."""
    return int(memory[:-1]) * (_GIB if memory.endswith("g") else 1024**2)

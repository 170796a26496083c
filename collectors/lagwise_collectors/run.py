"""Runs the collectors, once or until they are stopped: one thread for each cluster."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeGuard

import pyarrow as pa

from lagwise.config import AnyCluster, Cluster, Config, RocketmqCluster
from lagwise.operational.engine import Engine, open_engine
from lagwise.operational.heartbeats import beating
from lagwise.operational.leadership import Leadership, Renewal
from lagwise.operational.lease import RENEW_SECONDS, Lease, Process
from lagwise.platform import health
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_collectors.collector_heartbeat import CollectorHeart
from lagwise_collectors.lake_delivery.append_samples import lease_mark_of, lease_scope_of
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter, pause_for
from lagwise_collectors.lake_delivery.rivalry import Rivalry
from lagwise_collectors.pipeline import Pipeline, RunCost, pipeline_of
from lagwise_collectors.pipeline import summary_of as summary_of
from lagwise_collectors.protocol import Check, Source
from lagwise_collectors.reader_process.isolated_source import IsolatedSource, IsolatedTail
from lagwise_collectors.reader_process.kill_on_hang import ReaderAbandoned
from lagwise_collectors.sampling_schedule import FixedRate, rest_after_failures, schedule_of

if TYPE_CHECKING:
    from lagwise_collectors.kafka_in_process import KafkaInProcess

log = logging.getLogger("lagwise.collectors")

#: How long threads may take to end by themselves after the stop signal.
_STOP_SECONDS = 4.0
_WAKE_SECONDS = 1.0


def collect_once(config: Config) -> list[RunCost]:
    """Sample every cluster once, all at the same time. Returns the costs in the order of the settings.

    A cluster that cannot be read has a cost with errors. ``__consumer_offsets`` is not followed: events need more than
    one sample. Raises ConfigError if a secret that the lake's or the database's settings name does not exist, and
    NotLeader where another process collects one of the clusters.
    """
    lake, engine = _lake(config), open_engine(config.database_url)
    writer = LakeWriter(lake)

    def sample(cluster: AnyCluster) -> RunCost:
        with leadership_of(cluster, lake, engine).taken() as leadership:
            source = source_of(cluster, config)
            with closing(pipeline_of(cluster.name, source, config, writer, leadership)) as pipeline:
                return pipeline.run()

    with ThreadPoolExecutor(max(1, len(config.clusters))) as pool:
        runs = [pool.submit(sample, cluster) for cluster in config.clusters]
    engine.dispose()
    return [run.result() for run in runs]


def check_settings(cluster: AnyCluster) -> None:
    """Create the cluster's client without connecting. Raises ConfigError where it rejects a setting."""
    if isinstance(cluster, RocketmqCluster):
        from lagwise_collectors.rocketmq.remoting.client import RocketmqClient

        RocketmqClient(cluster).close()
        return
    from lagwise_collectors.kafka.requests.client import KafkaClient
    from lagwise_collectors.kafka.requests.errors import KafkaTrouble

    try:
        KafkaClient(cluster.model_copy(update={"bootstrap": "127.0.0.1:9"})).admin.poll(0)
    except KafkaTrouble as trouble:
        raise ConfigError(f"the librdkafka settings of the cluster {cluster.name} cannot be used: {trouble}") from None


class CollectedSource(Source, Protocol):
    """A source that a collector samples again and again."""

    def abandon(self) -> None:
        """End a sample under way, from another thread, and take none any more."""
        ...


def collect_forever(
    config: Config,
    stop: threading.Event,
    state: Path,
    make_source: Callable[[AnyCluster, Config], CollectedSource] | None = None,
) -> None:
    """Sample every cluster at its interval until ``stop`` is set, the first time soon.

    Samples of many clusters are spread over the interval. Clusters do not wait for each other: one that hangs costs
    only itself. A cluster that another process collects is left to that process until it ends. The heartbeat
    ``collector`` is renewed after each round. ``make_source`` makes the source of a cluster, by default
    :func:`source_of`. Raises ConfigError like :func:`collect_once`.
    """
    if len(config.clusters) > 1:
        # Arrow's default allocator keeps memory for each thread: 140 MiB with fifty clusters.
        pa.set_memory_pool(pa.system_memory_pool())
    with beating(state, health.COLLECTOR, config.database_url) as heart:
        heart_of_all = CollectorHeart(heart, [cluster.name for cluster in config.clusters])
        _collect_all(config, stop, heart_of_all, make_source or source_of)


def _collect_all(
    config: Config,
    stop: threading.Event,
    heart: CollectorHeart,
    make_source: Callable[[AnyCluster, Config], CollectedSource],
) -> None:
    lake, engine = _lake(config), open_engine(config.database_url)
    sources = {cluster.name: make_source(cluster, config) for cluster in config.clusters}
    tails = {c.name: IsolatedTail(c, _offsets_topic_state_of(c, config)) for c in config.clusters if _has_tail(c)}
    renewal = Renewal()
    leaderships = {c.name: leadership_of(c, lake, engine, renewal) for c in config.clusters}
    rivalries = {c.name: Rivalry(lake, c.name, leaderships[c.name].lease, c.interval_seconds) for c in config.clusters}
    writer = LakeWriter(lake, pause_seconds=pause_for([c.interval_seconds for c in config.clusters]))

    def pipeline(name: str) -> Pipeline:
        tail = tails.get(name)
        return pipeline_of(name, sources[name], config, writer, leaderships[name], tail, rivalries[name])

    def collect(cluster: AnyCluster) -> None:
        name = cluster.name
        schedule = partial(_schedule_of, cluster, config)
        _collect(cluster, partial(pipeline, name), schedule, leaderships[name], rivalries[name], stop, heart)

    threads = [
        threading.Thread(target=collect, args=(c,), name=f"collect-{c.name}", daemon=True) for c in config.clusters
    ]
    for thread in threads:
        thread.start()
    while not stop.wait(_WAKE_SECONDS):  # the system may hand a signal to another thread; Python handles it in this one
        pass
    deadline = time.monotonic() + _STOP_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    readers: list[CollectedSource | IsolatedTail] = [*sources.values(), *tails.values()]
    for reader in readers:
        reader.abandon()  # a thread that still waits for its reader is released by this
    for thread in threads:
        thread.join(max(1.0, _STOP_SECONDS / len(threads)))
    engine.dispose()


def check_access(cluster: AnyCluster) -> list[Check]:
    """Try everything that collecting from the cluster needs, for ``lagwise doctor``."""
    with closing(IsolatedSource(cluster)) as source:
        return source.check()


def _collect(
    cluster: AnyCluster,
    make: Callable[[], Pipeline],
    make_schedule: Callable[[], FixedRate],
    leadership: Leadership,
    rivalry: Rivalry,
    stop: threading.Event,
    heart: CollectorHeart,
) -> None:
    """The life of one cluster's thread: it samples while this process leads, and waits otherwise."""
    name, interval_seconds = cluster.name, cluster.interval_seconds
    leadership.start()
    pipeline: Pipeline | None = None
    schedule = make_schedule()
    try:
        while not stop.wait(schedule.wait_seconds(time.monotonic())):
            reason, other = _why_wait(leadership, rivalry)
            if reason is not None:
                if pipeline is not None:
                    pipeline.close()
                    pipeline = None
                heart.beat(name, f"{reason}; this process waits", is_well=False, waiting_for=other)
                stop.wait(RENEW_SECONDS)
                schedule = make_schedule()
                continue
            pipeline = pipeline or make()
            try:
                cost = pipeline.run()
                line, is_well = summary_of(cost), cost.is_well
            except ReaderAbandoned:
                break
            except Exception as error:  # a defect of ours must not end the watching of a cluster
                log.exception("%s: sampling failed unexpectedly", name, extra=event(LogEvent.DEFECT, cluster=name))
                line, is_well = f"{name}: failed unexpectedly ({type(error).__name__})", False
            if stop.is_set():
                break
            heart.beat(name, line, is_well=is_well)
            rest = rest_after_failures(pipeline.failures, interval_seconds)
            skipped = schedule.ran(time.monotonic(), rest_seconds=rest)
            if skipped:
                log.warning(
                    "%s: the sample took longer than its interval; %d samples were skipped",
                    name,
                    skipped,
                    extra=event(LogEvent.SAMPLES_SKIPPED, cluster=name),
                )
    finally:
        if pipeline is not None:
            pipeline.close()
        leadership.stop()


def _why_wait(leadership: Leadership, rivalry: Rivalry) -> tuple[str | None, int | None]:
    """Why this process leaves the cluster to another one, and the id of that process if it is of this machine."""
    reason, holder = leadership.why_not(), leadership.lease.holder
    if reason is not None and holder is not None:
        return reason, holder.process.pid_here
    # While the lease cannot be read, samples are taken and wait in the spool.
    return rivalry.why_not(), None


def _schedule_of(cluster: AnyCluster, config: Config) -> FixedRate:
    """The ticks of a cluster from now on."""
    return schedule_of(
        cluster.name,
        cluster.interval_seconds,
        clusters=len(config.clusters),
        now=time.monotonic(),
        wall_seconds=time.time(),
    )


def source_of(cluster: AnyCluster, config: Config) -> "IsolatedSource | KafkaInProcess":
    """A cluster's source, with the file in the state folder that survives its process; the prefix as for the spool."""
    if isinstance(cluster, RocketmqCluster):
        return IsolatedSource(cluster, state=config.state / "broker-numbers" / f"cluster-{cluster.name}.json")
    kept = config.state / "next-records" / f"cluster-{cluster.name}.json"
    if cluster.external_offsets:  # files, databases and job managers, over whatever libraries these take
        return IsolatedSource(cluster, state=kept)
    # Imported here, so that only a collector of Kafka clusters loads librdkafka.
    from lagwise_collectors.kafka_in_process import KafkaInProcess

    return KafkaInProcess(cluster, state=kept)


def _has_tail(cluster: AnyCluster) -> TypeGuard[Cluster]:
    return isinstance(cluster, Cluster) and cluster.offsets_topic


def _offsets_topic_state_of(cluster: Cluster, config: Config) -> Path:
    """The file with the positions in a cluster's ``__consumer_offsets``; the prefix as for the spool."""
    return config.state / "offsets-topic" / f"cluster-{cluster.name}.state"


def leadership_of(cluster: AnyCluster, lake: Lake, engine: Engine, renewal: Renewal | None = None) -> Leadership:
    """The leadership in collecting a cluster: one of several processes has it at a time. ``renewal`` is that of all
    clusters of this process."""
    name = cluster.name
    return Leadership(
        Lease(engine, lease_scope_of(name)),
        f"the collection of {name}",
        log,
        mark=lambda: lake.last_transaction(SAMPLES, lease_mark_of(name)),
        renewal=renewal,
    )


def _lake(config: Config) -> Lake:
    lake = Lake(config.lake_uri, config.lake.resolved_storage_options())
    lake.written_by = str(Process.of_this())
    return lake

"""The Spark session: one long-lived JVM, tuned for many small jobs on one machine, overridable by settings."""

import fcntl
import logging
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from pyspark.sql import SparkSession

from lagwise.config import SparkSettings
from lagwise.platform.errors import MissingRequirement
from lagwise.platform.files import why
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_folder, opened
from lagwise.platform.secrets import resolve_map
from lagwise_spark import jvm, object_store
from lagwise_spark.tasks.shipping import ship_code

#: Delta 4.4.0 is the newest that Maven Central has for Spark 4.2; 4.2.0 fails at a table's first checkpoint.
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

#: The optimising compiler pays from some amount of work on; below it, it doubles the time to the first verdicts.
#: Without it the JVM sets 48 MB aside for compiled code; a round needs more, and would compile the same things again
#: and again. For large work methods of any length are compiled: Spark generates some longer than the JVM would by
#: itself.
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m -Xss4m"
_THOROUGH_JVM = "-XX:+UseParallelGC -Xss4m -XX:-DontCompileHugeMethods"

#: A master on this machine only, whose executors need not be able to reach the driver from elsewhere.
_LOOPBACK = re.compile(r"spark://(127\.[0-9.]+|localhost):")

#: Beside the jars: the names of those that a successful start used.
_MARKER = "delta-4.4.0.jars"

_LOG = logging.getLogger("lagwise.spark")

#: Every aggregation and sort begins with a page of memory, by default of 8 MiB: hundreds of them in a round over
#: little, each to be cleared and collected again.
_QUICK_SETTINGS = {"spark.buffer.pageSize": "1m"}
_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # The lake is UTC; a session in another zone would shift days.
    "spark.sql.session.timeZone": "UTC",
    # Spark's own default has no time zone, and other readers of the files would take the times for local ones.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    # Settings that Spark hides in its UI and its event log. By default it would show Azure's keys and JAAS logins.
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key|account[.]?key|[.]sas[.]|jaas",
    "spark.ui.showConsoleProgress": "false",
    # A page that is not what was written is an error, and never a wrong number.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # By default every file on a disk gets another one with its checksums, which is not removed together with it. Pages
    # have their own, which other readers know, too.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # A Delta snapshot of ours has a few hundred files; its default of 50 tasks costs seconds per read.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.stalenessLimit": "0",
    # Every task of a small job costs more than its work: no more partitions than cores. What is small and what is
    # large is known beforehand, so planning again after every stage would gain nothing and take a second a round.
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows that lie together by topic-partition also lie together by sample and topic-partition: no need to move them.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Batches for Python are of so many rows; otherwise a batch's size in bytes would be added up anew after every row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # The parts of a union stay tasks of their own, instead of becoming one because each of them is one.
    "spark.sql.unionOutputPartitioning": "false",
    # Files that are named one by one are listed by the driver: a job for that would take longer.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # A task keeps a file open for every day it writes, instead of sorting its rows by day.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # A round is some two hundred compiled queries, and the next round's are the same: with room for all of them, and
    # names that do not depend on a query's place, they are compiled once and get ever faster.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.codegen.useIdInClassName": "false",
    # A list per topic-partition is gathered in memory; from 128 of them on Spark would sort instead.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Otherwise every call that makes a column asks the JVM ten more things, to name our line should a query fail.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The driver keeps what the UI would show, and there is none.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.ui.dagGraph.retainedRootRDDs": "1",
}


def default_ivy_dir() -> Path:
    """Where the Delta jars are kept: a folder of our own, because a half-filled user-wide one breaks the resolver."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lagwise" / "ivy"


def start_session(
    settings: SparkSettings,
    *,
    lake_uri: str = "",
    storage_options: Mapping[str, str] | None = None,
    app_name: str = "lagwise",
    log_file: Path | None = None,
    thorough: bool = False,
) -> SparkSession:
    """Start Spark, or raise MissingRequirement saying what the machine lacks.

    With ``lake_uri`` and ``storage_options`` (delta-rs's) it can read and write a lake in a store of the S3 kind.

    ``settings.conf`` wins over our defaults, so that a cluster's own settings can. What the JVM prints goes to
    ``log_file`` (by default a file beside the jars), never among our own output. ``thorough`` starts a JVM that
    compiles for speed: for large clusters.
    """
    require_java()
    given = resolve_map(settings.conf)
    packages = [*object_store.packages_for(lake_uri), *_listed(given.get("spark.jars.packages", ""))]
    ivy = settings.ivy_dir or default_ivy_dir()
    if packages:
        # A folder for each set: what is in it is sent to every executor.
        ivy /= f"with-{zlib.crc32(','.join(packages).encode()):08x}"
    log_file = log_file or ivy / "spark.log"
    ivy.mkdir(parents=True, exist_ok=True)
    conf = dict(_SETTINGS) if thorough else _SETTINGS | _QUICK_SETTINGS
    conf["spark.driver.memory"] = settings.driver_memory
    conf["spark.driver.extraJavaOptions"] = _THOROUGH_JVM if thorough else QUICK_JVM
    # On a cluster it is they who run the compiled queries.
    conf["spark.executor.extraJavaOptions"] = conf["spark.driver.extraJavaOptions"]
    conf["spark.jars.ivy"] = str(ivy)
    if settings.master.startswith("local") or _LOOPBACK.match(settings.master):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # On this machine the workers' Python is ours, which has the packages; a cluster's may lie elsewhere.
    os.environ["PYSPARK_PYTHON"] = given.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf |= given
    with _jars(ivy, [DELTA_PACKAGE, *packages]) as jars:
        conf |= jars
        if more := [*_listed(jars.get("spark.jars", "")), *_listed(given.get("spark.jars", ""))]:
            conf["spark.jars"] = ",".join(more)
        session = _started(app_name, settings, conf, ivy, log_file)
    # What is read and written from now on is read and written with these, by executors, too.
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    for key, value in object_store.conf_for(lake_uri, storage_options or {}).items():
        if f"spark.hadoop.{key}" not in given:
            hadoop.set(key, value)
    ship_code(session)
    return session


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _started(app_name: str, settings: SparkSettings, conf: dict[str, str], ivy: Path, log_file: Path) -> SparkSession:
    conf = {"spark.app.name": app_name, "spark.master": settings.master} | conf
    try:
        with _output_of_children_to(log_file):
            jvm.start(conf)
            session = SparkSession.builder.config(map={**conf}).getOrCreate()
    except Exception as error:  # py4j and pyspark raise many kinds; each means the same to the user
        reason = clean(str(error).strip().splitlines()[0])[:200]
        raise MissingRequirement(
            f"Spark did not start ({reason}). Its own output is in {log_file}; if it mentions dependencies, delete "
            f"{ivy} and try again while online."
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    # pyspark logs a failed query's whole plan as JSON on standard error; whoever catches the error says it in a line.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    return session


@contextmanager
def _jars(ivy: Path, packages: Sequence[str]) -> Iterator[dict[str, str]]:
    """The settings that give a session the packages' jars. The first time it has them fetched and remembers them, while
    every other process waits: two resolvers in one folder spoil each other's files."""
    with ExitStack() as waiting:
        jars = _resolved_jars(ivy)
        if not jars:
            fcntl.flock(waiting.enter_context((ivy / "lock").open("w")), fcntl.LOCK_EX)
            jars = _resolved_jars(ivy)
        if jars:
            waiting.close()
            # Asking the resolver again would cost seconds at every start, and a network to be sure.
            yield {"spark.jars": ",".join(jars), "spark.jars.packages": ""}
            return
        size = "about 90 MB, half a minute" if len(packages) == 1 else "with what else is asked for some hundred MB"
        _LOG.info("resolving the jars of %s into %s (first time only, %s)", ", ".join(packages), ivy, size)
        yield {"spark.jars.packages": ",".join(packages)}
        _remember_jars(ivy)


def _resolved_jars(ivy: Path) -> list[str]:
    """The jars that an earlier start resolved, or none if any of them is gone."""
    try:
        names = (ivy / _MARKER).read_text(encoding="utf-8").split()
    except OSError:
        return []
    jars = [ivy / "jars" / name for name in names]
    return [str(jar) for jar in jars] if jars and all(jar.exists() for jar in jars) else []


def _remember_jars(ivy: Path) -> None:
    names = sorted(jar.name for jar in (ivy / "jars").glob("*.jar"))
    (ivy / _MARKER).write_text("\n".join(names), encoding="utf-8")


@contextmanager
def _output_of_children_to(file: Path) -> Iterator[None]:
    """Processes started meanwhile write to the file instead of our standard output and error."""
    sys.stdout.flush()
    sys.stderr.flush()
    ours = [os.dup(1), os.dup(2)]
    with _kept_or_not(file) as sink:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
    try:
        yield
    finally:
        for fd, kept in zip((1, 2), ours, strict=True):
            os.dup2(kept, fd)
            os.close(kept)


def _kept_or_not(file: Path) -> IO[bytes]:
    """The file to append to; where that is not possible, one that takes everything and keeps nothing."""
    try:
        make_folder(file.parent)
        return opened(file, "ab")
    except OSError as error:
        _LOG.warning("cannot write %s: %s; what Spark's JVM prints is not kept before the next start", file, why(error))
        return Path(os.devnull).open("ab")


def require_java() -> None:
    """Raise MissingRequirement unless a Java of version 17 or newer can be found."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise MissingRequirement("Spark needs Java 17 or newer and there is none: install openjdk-17-jre-headless")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    version = shown.split('"')[1] if '"' in shown else ""
    major = version.split(".")[0]
    if not major.isdigit() or int(major) < 17:
        raise MissingRequirement(f"Spark needs Java 17 or newer; {java} is version {version or 'unknown'}")

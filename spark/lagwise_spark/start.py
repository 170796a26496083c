"""Starts Spark: one long-lived JVM that runs many small jobs, overridable by settings.

Tasks read and write the lake in Python themselves, so that Spark needs neither SQL nor any package for Delta or for an
object store. It distributes the work, and does it again where a worker dies.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark import SparkConf, SparkContext

from lagwise.config import SparkSettings
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import MissingRequirement
from lagwise.platform.files import why
from lagwise.platform.java import find_java
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_folder, opened
from lagwise.platform.secrets import resolve_map
from lagwise_spark import jvm
from lagwise_spark.tasks.shipping import ship_code

#: The JVMs hand on what Python makes: the optimising compiler would take longer than it saves.
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

#: A master on this machine only, whose executors need not be able to reach the driver from elsewhere.
_LOOPBACK = re.compile(r"spark://(127\.[0-9.]+|localhost):")

_LOG = logging.getLogger("lagwise.spark")

_SETTINGS = {
    "spark.ui.enabled": "false",
    # Settings that Spark hides in its UI and its event log. By default it would show Azure's keys and JAAS logins.
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key|account[.]?key|[.]sas[.]|jaas",
    "spark.ui.showConsoleProgress": "false",
    # The driver keeps what the UI would show, and there is none.
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.ui.dagGraph.retainedRootRDDs": "1",
    # Workers make the same large columns in each round. Returning memory to the system in between, and getting it again
    # page by page, cost CPU time. Arrow's own allocator cannot be kept from it; the C allocator keeps up to 1 GiB.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**30),
    # Spark starts `python -m pyspark.daemon` in the working directory, from which Python would import first: a folder
    # or file there that is named like a module (`lagwise`, `numpy.py`) would hide that module from the tasks.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}


def default_log_file() -> Path:
    """Where the JVM's output goes if nobody names a file."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lagwise" / "spark.log"


def start_spark(settings: SparkSettings, *, app_name: str = "lagwise", log_file: Path | None = None) -> SparkContext:
    """Start Spark, or raise MissingRequirement saying what the machine lacks.

    ``settings.conf`` wins over our defaults, so that a cluster's own settings can. What the JVM prints goes to
    ``log_file``, never among our own output.
    """
    find_java()
    given = resolve_map(settings.conf)
    conf = {
        **_SETTINGS,
        "spark.app.name": app_name,
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.extraJavaOptions": QUICK_JVM,
    }
    if settings.master.startswith("local") or _LOOPBACK.match(settings.master):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # On this machine the workers' Python is ours, which has the packages; a cluster's may lie elsewhere.
    os.environ["PYSPARK_PYTHON"] = given.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    context = _started(conf | given, log_file or default_log_file())
    ship_code(context)
    return context


def _started(conf: dict[str, str], log_file: Path) -> SparkContext:
    try:
        with _output_of_children_to(log_file):
            jvm.start(conf)
            context = SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))
    except Exception as error:  # py4j and pyspark raise many kinds; each means the same to the user
        reason = clean(str(error).strip().splitlines()[0])[:200]
        raise MissingRequirement(
            f"Spark did not start ({reason}). Its own output is in {log_file}", code=ErrorCode.SPARK_NOT_STARTED
        ) from error
    context.setLogLevel("ERROR")
    return context


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
        _LOG.warning(
            "cannot write %s: %s; what Spark's JVM prints is not kept before the next start",
            file,
            why(error),
            extra=event(LogEvent.FILE_NOT_WRITABLE),
        )
        return Path(os.devnull).open("ab")

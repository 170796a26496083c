"""A standalone Spark cluster on loopback: one master and two workers, processes from the pyspark package."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise_spark.start import QUICK_JVM

WORKERS = 2
_DEADLINE_SECONDS = 60.0


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start the cluster with its logs and working files in ``folder``; yields the master's URL.

    The executors are children of the workers; an executor ends when it loses its worker.
    """
    with ExitStack() as ends:
        master = folder / "master.log"
        ends.enter_context(_daemon("master.Master", master, "--port", "0"))
        url = _wait_for_log(master, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(WORKERS):
            log, work = folder / f"worker-{number}.log", folder / f"worker-{number}"
            options = ("--port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(work))
            ends.enter_context(_daemon("worker.Worker", log, *options, url))
        for number in range(WORKERS):
            _wait_for_log(folder / f"worker-{number}.log", "(Successfully registered with master)")
        yield url


def executors_of(folder: Path) -> int:
    """How many executors the workers have been asked to start so far, all applications together."""
    logs = [(folder / f"worker-{number}.log").read_text(encoding="utf-8") for number in range(WORKERS)]
    return sum(len(re.findall("Asked to launch executor", log)) for log in logs)


@contextmanager
def _daemon(name: str, log: Path, *arguments: str) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
    environment = os.environ | {
        "SPARK_HOME": str(home),
        # The pages that master and workers serve cannot be switched off; they are to listen here only.
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    with log.open("wb") as sink:
        process = subprocess.Popen(
            dying_with_parent([*command, "--webui-port", "0", *arguments]),
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_log(log: Path, pattern: str) -> str:
    """The first group of the pattern once the log holds it."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while True:
        text = log.read_text(encoding="utf-8", errors="replace")
        found = re.search(pattern, text)
        if found:
            return found[1]
        assert time.monotonic() < deadline, f"{log.name} does not say {pattern!r}:\n{text[-3000:]}"
        time.sleep(0.05)

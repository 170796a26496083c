"""A real Flink job: a JVM with a cluster of its own, its jars fetched once by the Ivy that ships inside pyspark."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.java import find_java
from lagwise_sandbox.jars import _pyspark_jars

FLINK, CONNECTOR = "1.20.3", "3.4.0-1.20"
_JOB = Path(__file__).parent / "golden" / "FlinkJob.java"
_ARTIFACTS = {
    "flink-streaming-java": FLINK,
    "flink-clients": FLINK,
    "flink-runtime-web": FLINK,
    "flink-connector-base": FLINK,
    "flink-connector-kafka": CONNECTOR,
}


def classpath(tmp_path: Path) -> str:
    """The job, compiled, and the jars (84 MB the first time). Skips the test where no compiler is there."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no Java compiler")
    jars = _jars()
    subprocess.run([javac, "-cp", f"{jars}/*", "-d", str(tmp_path), str(_JOB)], check=True, capture_output=True)
    return f"{tmp_path}{os.pathsep}{jars}/*"


def _jars() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lagwise" / f"flink-{FLINK}"
    if (base / "complete").exists():
        return base / "jars"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    wanted = "".join(
        f'<dependency org="org.apache.flink" name="{name}" rev="{version}" conf="default->default"/>'
        for name, version in _ARTIFACTS.items()
    )
    (base / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="lagwise" module="flink"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )
    (ivy,) = _pyspark_jars().glob("ivy-*.jar")
    pattern = base / "jars" / "[organisation].[artifact]-[revision](-[classifier]).[ext]"
    command = [str(find_java()), "-jar", str(ivy), "-cache", str(base / "ivy"), "-ivy", str(base / "ivy.xml")]
    subprocess.run([*command, "-m2compatible", "-retrieve", str(pattern)], check=True, capture_output=True, timeout=600)
    shutil.rmtree(base / "ivy")
    (base / "complete").touch()
    return base / "jars"


@contextmanager
def running(
    where: str, *, bootstrap: str, topic: str, group: str, interval_ms: int, ms_per_record: int
) -> Iterator[str]:
    """The job's REST address; it may take some seconds until somebody answers there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [bootstrap, str(port), str(interval_ms), str(ms_per_record), "true", "-1", topic, group]
    jvm = [str(find_java()), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", where, "FlinkJob"]
    job = subprocess.Popen(dying_with_parent([*jvm, *arguments]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        job.kill()
        job.wait()

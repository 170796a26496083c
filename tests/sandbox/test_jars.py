"""Keeping Kafka's jars."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lagwise.platform.errors import MissingRequirement
from lagwise_sandbox import jars
from tests.sandbox.kafka_tools import KAFKA_TOOLS

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java 17 or newer")


def test_the_cache_is_in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cache_folder(jars.KAFKA) == tmp_path / "lagwise" / "kafka-4.3.0"


def _fetch_tools(cache: Path, progress: list[str] | None = None) -> list[Path]:
    """The smallest real artifact: the same path as the broker's 47 jars, in a second."""
    reported = (progress if progress is not None else []).append
    return jars.resolved(KAFKA_TOOLS, reported, cache)


@needs_java
@pytest.mark.broker
def test_a_damaged_cache_is_repaired_and_a_whole_one_is_left_alone(tmp_path: Path) -> None:
    progress: list[str] = []
    first = _fetch_tools(tmp_path, progress)
    assert [jar.name for jar in first] == ["org.apache.kafka.kafka-tools-4.3.0.jar"]
    assert progress[-1].endswith("3 of 3")
    whole = first[0].read_bytes()

    progress.clear()
    assert _fetch_tools(tmp_path, progress) == first
    assert progress == []

    first[0].write_bytes(whole[:1000])  # as a full disk or a killed process leaves it
    (tmp_path / "kafka-tools.part-abandoned").mkdir()
    assert _fetch_tools(tmp_path) == first
    assert first[0].read_bytes() == whole

    (tmp_path / "kafka-tools" / "complete.json").write_text("[1, 2")
    assert _fetch_tools(tmp_path) == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kafka-tools", "kafka-tools.lock"]


@needs_java
@pytest.mark.broker
def test_two_processes_that_fetch_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from lagwise_sandbox import jars; "
        "from tests.sandbox.kafka_tools import KAFKA_TOOLS; "
        f"print(jars.resolved(KAFKA_TOOLS, cache=Path({str(tmp_path)!r}))[0].name)"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0].strip() for process in both]
    assert outputs == ["org.apache.kafka.kafka-tools-4.3.0.jar"] * 2


@needs_java
@pytest.mark.broker
def test_an_unreachable_repository_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", nowhere)
    with pytest.raises(MissingRequirement) as refused:
        _fetch_tools(tmp_path)
    message = str(refused.value)
    assert "Connection refused" in message
    assert "JAVA_TOOL_OPTIONS" in message
    assert "\n" not in message
    assert "://" not in message
    assert not (tmp_path / "kafka-tools").exists()


def test_a_cache_whose_place_is_taken_by_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(MissingRequirement, match="XDG_CACHE_HOME"):
        _fetch_tools(tmp_path / "cache")

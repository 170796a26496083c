"""The dashboard as users run it: its real server as a process of its own, over a lake in a folder."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from lagwise.platform.health import DASHBOARD
from lagwise_app.supervisor.effective_settings import child_environment
from lagwise_app.supervisor.processes import process_command

_START_SECONDS = 60.0


def write_settings(
    folder: Path, *, port: int = 8501, sign_in: object = None, refresh_seconds: float = 5, **analysis: float
) -> Path:
    """A settings file for a lake in ``folder``: two clusters, as in the stories, and two channels."""
    file = folder / "lagwise.yaml"
    settings = {
        "data": str(folder),
        "clusters": [
            {"name": "prod", "bootstrap": "kafka-1.prod:9092", "librdkafka": {"security.protocol": "SASL_SSL"}},
            {"name": "staging", "bootstrap": "kafka-1.staging:9092"},
        ],
        "analysis": analysis,
        "alerts": {
            "channels": [
                {"name": "on-call", "url": "http://127.0.0.1:9/hook"},
                {"name": "team-chat", "url": "http://127.0.0.1:9/hook"},
            ]
        },
        "dashboard": {"port": port, "refresh_seconds": refresh_seconds, "sign_in": sign_in},
    }
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return file


def free_port() -> int:
    """A port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(
    folder: Path, *, port: int | None = None, sign_in: object = None, refresh_seconds: float = 5, **analysis: float
) -> Iterator[str]:
    """Serve the folder's lake; yields the address, without a slash at its end. The log is ``folder/dashboard.log``.

    The process is started as ``lagwise up`` starts it. It runs in the folder, not in the checkout: Streamlit's own
    settings must reach it all the same.
    """
    port = port or free_port()
    settings = write_settings(folder, port=port, sign_in=sign_in, refresh_seconds=refresh_seconds, **analysis)
    with started(process_command(DASHBOARD), folder, f"http://127.0.0.1:{port}", settings) as address:
        yield address


@contextmanager
def started(command: list[str], folder: Path, address: str, settings: Path | None = None) -> Iterator[str]:
    """Run a dashboard in a folder until the block ends; yields its address once it answers.

    Without ``settings`` its environment says nothing about them. Nothing of this process's environment gets through.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LAGWISE_", "STREAMLIT_"))}
    if settings is not None:
        environment = child_environment(settings, environment)
    with (folder / "dashboard.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            wait_until_served(address, process, folder / "dashboard.log")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_served(
    address: str, process: "subprocess.Popen[bytes]", log: Path, *, path: str = "/_stcore/health"
) -> None:
    """Wait until a server that was just started (a dashboard, if it is not told) answers."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{address}{path}", timeout=2).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text(encoding='utf-8')}")

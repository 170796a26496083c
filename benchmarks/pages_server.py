"""The servers whose pages are measured: the dashboard over a lake, and Streamlit with next to nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import yaml
from playwright.sync_api import Browser

from benchmarks.pages_cast import CLUSTER, INTERVAL_SECONDS
from lagwise.platform.health import DASHBOARD
from lagwise_app.supervisor.effective_settings import child_environment
from lagwise_app.supervisor.processes import process_command
from tests.dashboard.browsing import chromium, launched
from tests.dashboard.serving import wait_until_served

#: Starts a server in a folder, on a port.
Server = Callable[[Path, int], AbstractContextManager[tuple[str, psutil.Process]]]

#: How often pages look for new data, by default.
REFRESH_SECONDS = 2


@contextmanager
def running(command: list[str], folder: Path, port: int, env: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """A server as a process of its own: its address, once it answers, and the process."""
    log = folder / "dashboard.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=output, stderr=output)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_served(address, process, log)
            yield address, psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@contextmanager
def bare(folder: Path, port: int) -> Iterator[tuple[str, psutil.Process]]:
    """A page of Streamlit's own with one table."""
    app = folder / "bare.py"
    app.write_text(
        "import pandas as pd, streamlit as st\nst.dataframe(pd.DataFrame({'a': range(50), 'b': range(50)}))\n",
        encoding="utf-8",
    )
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", str(app), *options, "--browser.gatherUsageStats=false"]
    with running(command, folder, port, dict(os.environ)) as server:
        yield server


@contextmanager
def served(
    folder: Path, port: int, *, refresh_seconds: float = REFRESH_SECONDS
) -> Iterator[tuple[str, psutil.Process]]:
    """A dashboard over the folder's lake without a visitor so far: its address, and its process."""
    settings = folder / "lagwise.yaml"
    cluster = {"name": CLUSTER, "bootstrap": "127.0.0.1:9", "interval_seconds": INTERVAL_SECONDS}
    dashboard = {"port": port, "refresh_seconds": refresh_seconds}
    analysis = {"interval_seconds": 3600}  # the lake is not to become stale while it is measured
    settings.write_text(
        yaml.safe_dump({"data": str(folder), "clusters": [cluster], "dashboard": dashboard, "analysis": analysis}),
        encoding="utf-8",
    )
    with running(process_command(DASHBOARD), folder, port, child_environment(settings)) as server:
        yield server


def browser_of_machine() -> AbstractContextManager[Browser]:
    """The Chromium of this machine, started. Raises SystemExit where there is none."""
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium on this machine: install Debian's package chromium, or set LAGWISE_CHROMIUM")
    return launched(path)

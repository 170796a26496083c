"""SIGTERM on processes that end, that hang, and that have to be interrupted: real signals, real processes."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

_ENDS = """
import os, signal
from lagwise_app.terminal.signals import Signals
stop = Signals(hang_seconds=60).stop
os.kill(os.getpid(), signal.SIGTERM)
assert stop.wait(60)
"""
_HANGS = """
import os, signal, threading
from lagwise_app.terminal.signals import Signals
def held_for_ever():
    threading.Event().wait()
stop = Signals(hang_seconds=0.2).stop
os.kill(os.getpid(), signal.SIGTERM)
stop.wait()
held_for_ever()
"""
_INTERRUPTED = """
import os, signal, time
from lagwise_app.terminal.signals import Interrupted, Signals
try:
    with Signals().interrupting():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(600)
except Interrupted:
    print("interrupted")
"""


def _run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


def test_a_process_that_ends_says_nothing() -> None:
    ended = _run(_ENDS)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_process_that_hangs_says_where_and_ends() -> None:
    ended = _run(_HANGS)
    assert ended.returncode == 1
    assert "in held_for_ever" in ended.stderr


def test_a_long_wait_is_interrupted() -> None:
    ended = _run(_INTERRUPTED)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")

"""The alert process in a thread of the tests, and waiting for what it does."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lagwise.config import Config
from lagwise.platform import health
from lagwise_alerts.run import alert_forever

MakeConfig = Callable[..., Config]


@contextmanager
def running(config: Config) -> Iterator[None]:
    """The alert process in a thread; it must end within seconds of being told to."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            alert_forever(config, stop, config.state)
        except BaseException as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(8)
        assert not thread.is_alive()
        assert not errors


def until(holds: Callable[[], bool], within_seconds: float = 120.0) -> None:
    deadline = time.monotonic() + within_seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come to hold in time"
        time.sleep(0.02)


def beat_of(config: Config) -> str:
    found = health.read(config.state).get("alerts")
    return found.line if found else ""

"""Receivers that are closed again, a database of the test's own, and no proxy between us and the loopback."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from lagwise.config import Config
from lagwise.tables.store import Lake
from lagwise_alerts.outbox.database import create_tables, open_engine
from tests.alerts.receiver import OK, Answer, Receiver
from tests.alerts.rounds import MakeConfig
from tests.alerts.support import LakeWriter


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    """Makes running receivers."""
    with ExitStack() as stack:

        def make(then: Answer = OK, port: int = 0) -> Receiver:
            return stack.enter_context(Receiver(then, port))

        yield make


@pytest.fixture
def config(lake: Lake, tmp_path: Path) -> MakeConfig:
    """Makes settings over the test's own lake, with channels by name and address."""

    def make(urls: dict[str, str] | None = None, **changes: Any) -> Config:
        channels = [{"name": name, "url": url} for name, url in (urls or {}).items()]
        alerts = {"interval_seconds": 0.05, "channels": channels} | changes.pop("alerts", {})
        return Config.model_validate(
            {
                "data": str(Path(lake.uri).parent),
                "state_dir": str(tmp_path / "state"),
                "clusters": [{"name": "kafka", "bootstrap": "127.0.0.1:9092"}],
                "alerts": alerts,
                **changes,
            }
        )

    return make


@pytest.fixture
def writer(lake: Lake) -> LakeWriter:
    """Writes into the test's own lake."""
    return LakeWriter(lake)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Engine]:
    """An empty operational database of the kind that is used unless the settings name another."""
    yield from _prepared(f"sqlite:///{tmp_path / 'state' / 'lagwise.db'}")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An empty operational database, of each kind that is promised."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
    else:
        yield from _prepared(request.getfixturevalue("postgresql"))


def _prepared(url: str) -> Iterator[Engine]:
    made = open_engine(url)
    create_tables(made)
    yield made
    for thread in threading.enumerate():
        if thread.name.startswith("channel "):  # it was told to stop, and may have something to mark yet
            thread.join(10)
    made.dispose()

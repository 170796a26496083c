"""Receivers that are closed again, a database of the test's own, and no proxy between us and the loopback."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine

from lagwise.alerts.database import open_engine, prepare
from tests.alerts.receiver import OK, Answer, Receiver


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
    prepare(made)
    yield made
    for thread in threading.enumerate():
        if thread.name.startswith("channel "):  # it was told to stop, and may have something to mark yet
            thread.join(10)
    made.dispose()

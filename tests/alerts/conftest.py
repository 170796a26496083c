"""Receivers that are closed again, a database of the test's own, and no proxy between us and the loopback."""

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
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty operational database."""
    made = open_engine(f"sqlite:///{tmp_path / 'state' / 'lagwise.db'}")
    prepare(made)
    yield made
    made.dispose()

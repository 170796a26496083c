"""Operational databases, empty, of each kind that is promised."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from lagwise.operational.engine import open_engine


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state' / 'lagwise.db'}"
    found: str = request.getfixturevalue("postgresql")
    return found


@pytest.fixture
def opened() -> Iterator[Callable[[str], Engine]]:
    """Opens databases, each time with connections of its own as another process would have."""
    engines: list[Engine] = []

    def make(url: str) -> Engine:
        engines.append(open_engine(url))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()

"""Channels that are closed again, with secrets in the environment, at a moment of the test's own."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter

from lagwise.config.channels import AnyChannel
from lagwise_alerts.channels import Channel, make_channel
from tests.alerts.channels.tls import trusted

__all__ = ["trusted"]

NOW = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Channel]]:
    """Makes channels; what is given as ``secret_…`` stands in the environment, and is named in the settings."""
    made: list[Channel] = []

    def make(kind: str, **settings: Any) -> Channel:
        for key in [key for key in settings if key.startswith("secret_")]:
            variable = f"LAGWISE_SECRET_TEST_{len(made)}_{key}"
            monkeypatch.setenv(variable, settings.pop(key))
            settings[key.removeprefix("secret_")] = f"${{env:{variable}}}"
        tree = {"name": "ops", "type": kind, "timeout_seconds": 5.0, **settings}
        made.append(make_channel(TypeAdapter(AnyChannel).validate_python(tree), lambda: NOW))
        return made[-1]

    yield make
    for one in made:
        one.close()

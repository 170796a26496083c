"""Fixtures are grouped by what they need to start: see ``tests/fixtures``."""

from collections.abc import Iterator

import pytest

from lagwise import secrets

pytest_plugins = ["tests.fixtures.broker", "tests.fixtures.browser", "tests.fixtures.lake", "tests.fixtures.spark"]


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Iterator[None]:
    """A secret that one test resolved is not blotted out of what another one shows."""
    yield
    secrets._resolved.clear()

"""Fixtures are grouped by what they need to start: see ``tests/fixtures``."""

pytest_plugins = ["tests.fixtures.broker", "tests.fixtures.lake", "tests.fixtures.spark"]

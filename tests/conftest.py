"""Fixtures are grouped by what they need to start: see ``tests/fixtures``."""

import gc

from hypothesis import settings

# What is made up is the same in every run: a failure can be had again, and the suite fails for the change and not by
# luck. A machine under load is slow, which is nothing about the code.
settings.register_profile("lagwise", derandomize=True, deadline=None, database=None)
settings.load_profile("lagwise")

pytest_plugins = [
    "tests.fixtures.broker",
    "tests.fixtures.browser",
    "tests.fixtures.lake",
    "tests.fixtures.object_store",
    "tests.fixtures.postgresql",
    "tests.fixtures.rocketmq",
    "tests.fixtures.secrets",
    "tests.fixtures.sentences",
    "tests.fixtures.spark",
    "tests.fixtures.workers",
]


def pytest_unconfigure() -> None:
    """Take Hypothesis's function out of ``gc.callbacks``, which the interpreter would still call while it ends.

    What its last collections should free stays alive then, the types of DuckDB among it, and DuckDB's binding
    (nanobind) reports each of them as a leak, in fifty lines after the summary.
    """
    gc.callbacks[:] = [one for one in gc.callbacks if not one.__module__.startswith("hypothesis.")]

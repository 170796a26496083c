"""Coroutines in tests that are not coroutines themselves."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_apart(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What a coroutine function returns, run in a thread of its own.

    A browser that an earlier test of the same worker has opened keeps its event loop running in the main thread.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(function())).result()

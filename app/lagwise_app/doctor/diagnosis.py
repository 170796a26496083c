"""The outcome of a check of `lagwise doctor`."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class CheckResult(StrEnum):
    """How a check went. A warning is something that works now and may not later."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome of one check: what was looked at, what was found, and what to do about it (None if nothing)."""

    check: str
    result: CheckResult
    found: str
    advice: str | None = None


@contextlib.contextmanager
def removed_afterwards(folder: Path) -> Iterator[None]:
    """Remove what was made inside: the folder itself, and those above it that were not there and are empty."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for place in made[1:]:
            with contextlib.suppress(OSError):  # not empty: somebody else has begun to use it
                place.rmdir()

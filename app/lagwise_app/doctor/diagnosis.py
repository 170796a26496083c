"""The outcome of a check of `lagwise doctor`."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lagwise.platform.logs import clean


class CheckResult(StrEnum):
    """How a check went. A warning is about something that works now and may fail later."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome of one check, and the advice; None where there is nothing to do."""

    check: str
    result: CheckResult
    found: str
    advice: str | None = None


def ok(check: str, found: str) -> Diagnosis:
    """A check that passed. Its words, like those of the others, are made safe to print here."""
    return Diagnosis(clean(check), CheckResult.OK, clean(found))


def warning(check: str, found: str, advice: str | None) -> Diagnosis:
    """A check that found what may fail later."""
    return Diagnosis(clean(check), CheckResult.WARNING, clean(found), advice and clean(advice))


def failed(check: str, found: str, advice: str | None = None) -> Diagnosis:
    """A check that failed."""
    return Diagnosis(clean(check), CheckResult.FAILED, clean(found), advice and clean(advice))


@contextlib.contextmanager
def removed_afterwards(folder: Path) -> Iterator[None]:
    """Remove the folder afterwards, and its parents where they did not exist before and are empty."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for place in made[1:]:
            with contextlib.suppress(OSError):  # not empty: another process uses it
                place.rmdir()

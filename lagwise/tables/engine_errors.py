"""Errors of delta-rs, pyarrow and DuckDB, as people read them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LakeError

#: Between the lines of delta-rs's errors.
_LED_TO_BY = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?\s*")


def in_a_line(error: BaseException) -> str:
    """What delta-rs draws as a tree (an error, and below it what led to it) one after the other; of others the first
    line."""
    text = _LED_TO_BY.sub(": ", str(error).strip())
    return text.splitlines()[0] if text else type(error).__name__


@contextmanager
def as_lake_errors(what: str) -> Iterator[None]:
    """Errors of delta-rs and of the storage become a LakeError: ``what`` could not be done, and why."""
    from deltalake.exceptions import DeltaError  # Spark's tasks read files without it

    try:
        yield
    except (DeltaError, OSError) as error:
        raise LakeError(f"{what}: {in_a_line(error)}", code=code_of_system(error, ErrorCode.LAKE_UNUSABLE)) from error

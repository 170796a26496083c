"""Errors of delta-rs, pyarrow and DuckDB, as people read them."""

import re

#: Between the lines of delta-rs's errors.
_LED_TO_BY = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?\s*")


def in_a_line(error: BaseException) -> str:
    """What delta-rs draws as a tree (an error, and below it what led to it) one after the other; of others the first
    line."""
    text = _LED_TO_BY.sub(": ", str(error).strip())
    return text.splitlines()[0] if text else type(error).__name__

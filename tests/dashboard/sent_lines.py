"""Lines of charts as they are sent: see :mod:`lagwise_dashboard.packed`."""

import base64
import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np


def unpacked(values: Any) -> list[float | None]:
    """Numbers, as a list or packed."""
    if isinstance(values, list):
        return values
    found = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return [None if math.isnan(value) else float(value) for value in found]


def times_of(trace: dict[str, Any]) -> list[datetime]:
    """The times of a line's points."""
    if "x" in trace:
        return [datetime.fromisoformat(at) for at in trace["x"]]
    first, step = datetime.fromisoformat(trace["x0"]), timedelta(milliseconds=trace["dx"])
    return [first + n * step for n in range(len(unpacked(trace["y"])))]

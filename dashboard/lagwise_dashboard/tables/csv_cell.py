"""One value of a CSV file: raw, and harmless in a spreadsheet."""

import math
from datetime import UTC, datetime

from lagwise_dashboard import escaping

#: A spreadsheet takes a text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: object) -> object:
    """Text on one line and never a formula, moments as ISO 8601 in UTC; what is not known is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str):
        text = escaping.shown(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value

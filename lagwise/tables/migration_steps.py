"""The numbered steps that bring the lake of an older version up to date.

A column that may be null needs no step: it is added from its declaration. Everything else does: a column that may not
be null, one that is gone or means something else. A step may be killed and done again. A step that has been released
never changes; what it says of columns holds for the version it leads to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lagwise.tables import ALL_TABLES
from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS, TOPIC_HOURS
from lagwise.tables.minutes import DAYS, HOURS
from lagwise.tables.rewrite import rewrite
from lagwise.tables.schema import Table, no_rows
from lagwise.tables.store import Lake


@dataclass(frozen=True)
class Step:
    """A step: the version it leads to, what it does in words, and how."""

    version: int
    what: str
    run: Callable[[Lake], None]


#: What columns of release 0.1 that may not be null hold in rows of earlier checkouts.
_BEFORE_0_1: dict[Table, dict[str, Any]] = {
    HOURS: {"long_pauses": 0},
    DAYS: {"long_pauses": 0},
}
#: The analysis makes these anew from the others within the hour.
_MADE_ANEW = (DEMAND, FORECASTS, CAPACITY)


def _to_release_0_1(lake: Lake) -> None:
    for table in ALL_TABLES:
        defaults = _BEFORE_0_1.get(table, {})

        def change(rows: pa.Table, table: Table = table, defaults: dict[str, Any] = defaults) -> pa.Table:
            if table in _MADE_ANEW:
                return no_rows(table.arrow)
            if table is TOPIC_HOURS:
                rows = _with_busiest_minute(rows)
            for name, value in defaults.items():
                if name not in rows.column_names:
                    field = table.arrow.field(name)
                    rows = rows.append_column(field, pa.array([value] * rows.num_rows, field.type))
            return rows

        rewrite(lake, table, change)


def _with_busiest_minute(rows: pa.Table) -> pa.Table:
    """Hours with the rates of their minutes, of which only the busiest one is known."""
    field = TOPIC_HOURS.arrow.field("minute_rates_per_second")
    if field.name in rows.column_names:
        return rows
    rates = []
    for at, rate in zip(rows["max_at"].to_pylist(), rows["max_rate_per_second"].to_pylist(), strict=True):
        rates.append([None] * at.minute + [rate] + [None] * (59 - at.minute))
    return rows.append_column(field, pa.array(rates, field.type))


STEPS: tuple[Step, ...] = (
    Step(1, "columns of checkouts before release 0.1 become those of the release", _to_release_0_1),
)

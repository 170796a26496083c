"""Every table is declared completely."""

import pyarrow as pa
import pytest

from lagwise.tables import ALL_TABLES, Table
from lagwise.tables.schema import TIMESTAMP

UNITS = ("_seconds", "_per_second", "_ms", "_bytes", "_at", "_of", "_until")


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda t: t.name)
def test_declaration_is_complete(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    assert all(column.meaning and not column.meaning.endswith(".") for column in table.columns)
    if table.clock is not None:
        assert table.arrow.field(table.clock).type == TIMESTAMP
        assert not table.arrow.field(table.clock).nullable, "a row without a time belongs to no day"


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda t: t.name)
def test_times_are_utc_microseconds(table: Table) -> None:
    for field in table.arrow:
        if pa.types.is_timestamp(field.type):
            assert field.type == TIMESTAMP, field.name


def test_names_are_unique() -> None:
    assert len({table.name for table in ALL_TABLES}) == len(ALL_TABLES)

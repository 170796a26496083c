"""From a column's unit follow how it reads, how it sorts, and what a CSV holds."""

import csv
import io
import math
from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.humanise import count
from lagwise_dashboard import appearance, tables
from lagwise_dashboard.csv_export import as_csv, file_name
from lagwise_dashboard.tables import TableColumn

NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)


def sorted_by(column: TableColumn) -> list[object]:
    """The cells in the order of the column, those that are not known last."""
    assert column.order is not None
    known = [(value, shown) for value, shown in zip(column.order, column.cells, strict=True) if value is not None]
    return [shown for _, shown in sorted(known, key=lambda pair: pair[0])]


def parsed(*columns: TableColumn) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(columns))))


def test_times_sort_by_length_and_are_raw_seconds_in_a_csv() -> None:
    column = tables.duration("Oldest unread", [4080.0, 8.2, None, 90_000.0], at_least=[True, False, False, None])
    assert column.cells == ["≥ 1 h 8 min", "8.2 s", None, "1 d 1 h"]
    assert sorted_by(column) == ["8.2 s", "≥ 1 h 8 min", "1 d 1 h"]
    assert [row["oldest_unread_seconds"] for row in parsed(column)] == ["4080.0", "8.2", "", "90000.0"]
    assert parsed(column)[0]["oldest_unread_seconds_is_lower_bound"] == "True"


def test_what_never_ends_is_the_longest_and_what_is_over_reads_as_that() -> None:
    column = tables.duration("Caught up in", [math.inf, 60.0, 0.0], endless="never", zero="now")
    assert sorted_by(column) == ["now", "1 min", "never"]
    assert [row["caught_up_in_seconds"] for row in parsed(column)] == ["inf", "60.0", "0.0"]


def test_a_lower_bound_of_nothing_is_not_known() -> None:
    assert tables.duration("Age", [0.0], at_least=[True]).cells == [None]
    assert tables.duration("Age", [6.0], at_most=[True]).cells == ["≤ 6 s"]


def test_numbers_sort_by_value_whatever_their_suffix() -> None:
    lag = tables.count("Lag", [14_174, 2_000_000, 999, None, math.nan], of="records")
    assert sorted_by(lag) == ["999", count(14_174), count(2_000_000)]
    assert [row["lag_records"] for row in parsed(lag)] == ["14174", "2000000", "999", "", ""]
    assert sorted_by(tables.rate("In/s", [0.004, 1_234.5, 0.0])) == ["0", "< 0.01", count(1_234.5)]
    assert list(tables.rate("In/s", [1.0]).raw) == ["in_per_second"]
    assert sorted_by(tables.size("Size", [2_000_000, 999])) == ["999 B", "2.00 MB"]
    assert sorted_by(tables.share("Share", [0.5, 0.05])) == ["5.0 %", "50.0 %"]


def test_moments_sort_by_time_and_are_iso_8601_in_a_csv() -> None:
    yesterday = NOW - timedelta(days=1)
    at = [yesterday, NOW, None]
    for column in (tables.moment("At", at, NOW), tables.ago("At", at, NOW)):
        assert column.order == [yesterday.timestamp(), NOW.timestamp(), None]
        assert [row["at"] for row in parsed(column)] == ["2026-11-20T12:00:05Z", "2026-11-21T12:00:05Z", ""]
    assert tables.moment("At", at, NOW).cells == ["2026-11-20 12:00:05 UTC", "12:00:05 UTC", None]
    assert tables.ago("At", at, NOW, never="never").cells == ["1 d ago", "0 s ago", "never"]


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(5, 5, "5"), (5, 10, "5 to 10"), (5, None, "≥ 5"), (None, None, None)]
)
def test_a_number_that_is_only_bounded_has_both_bounds_in_a_csv(
    low: float | None, high: float | None, shown: str | None
) -> None:
    column = tables.between("Lost", [low], [high], formatter=count, of="records")
    assert column.cells == [shown]
    assert list(column.raw) == ["lost_records_at_least", "lost_records_at_most"]


def test_statuses_sort_by_how_bad_they_are_and_are_words_in_a_csv() -> None:
    ok, stopped = (
        appearance.STATUS_APPEARANCES[status].label for status in (appearance.Status.OK, appearance.Status.STOPPED)
    )
    column = tables.statuses("Status", [[ok], [stopped, "since noon"], []])
    assert sorted_by(column) == [[stopped, "since noon"], [ok]]
    assert [row["status"] for row in parsed(column)] == ["ok", "stopped; since noon", ""]


def test_names_from_outside_are_visible_and_no_formulas() -> None:
    column = tables.text("Group", ["=1+1", "a\nb", "‮evil", "", None])
    assert column.cells == ["=1+1", "a\\nb", "\\u202eevil", None, None]
    assert [row["group"] for row in parsed(column)] == ["'=1+1", "a\\nb", "\\u202eevil", "", ""]


def test_a_trend_is_not_in_a_csv() -> None:
    assert as_csv([tables.trend("Last hour", [[1.0, 2.0]]), tables.number("Partition", [7])]) == "partition\n7\n"


def test_a_file_is_named_after_its_table_what_it_is_about_and_the_time() -> None:
    assert file_name("partitions", ("prod", "orders"), NOW) == "lagwise-partitions-prod-orders-2026-11-21T120005Z.csv"
    hostile = file_name("partitions", ("prod", '../../etc/passwd\n"; rm -rf /'), NOW)
    assert hostile == "lagwise-partitions-prod-etc-passwd-rm-rf-2026-11-21T120005Z.csv"
    assert len(file_name("partitions", ("x" * 300, "y" * 300), NOW)) < 255


def test_columns_of_which_nothing_is_known_can_be_left_out() -> None:
    empty, kept = tables.text("Queue", [None, ""]), tables.text("Owner", [None])
    assert tables.without_empty([empty, kept], "Queue") == [kept]


def test_spans_lie_on_a_logarithmic_axis_and_end_with_it() -> None:
    ticks = [(60.0, "now"), (600.0, "10 min"), (6000.0, "late")]
    made = tables.span("Span", [0.0, 600.0, None, 60.0], [60.0, 9e9, 600.0, None], ["a", "b", "c", "d"], ticks)
    assert made.cells == [[0.0, 0.0, "a"], [0.5, 1.0, "b"], None, [0.0, 0.0, "d"]]
    assert made.axis == [(0.0, "now"), (0.5, "10 min"), (1.0, "late")]
    assert not made.raw, "its values are in columns of their own"


def test_bullet_bars_share_one_axis_that_what_is_beyond_it_does_not_stretch() -> None:
    ticks = [(0.0, "0"), (1.0, "100 %"), (2.0, "200 %")]
    look = appearance.CAPACITY_APPEARANCES["tight"]
    whole = tables.Bullet(look.label, 0.5, 1.0, 1.2, 1.5, 1.1, "half\u202e is used")
    beyond = tables.Bullet("? new", 50.0, None, None, None, None, "far too small")
    made = tables.bullet("Used", [whole, None, beyond], ticks, [look])
    assert made.cells == [
        [look.label, 0.25, 0.5, 0.6, 0.75, 0.55, "half\\u202e is used"],
        None,
        ["? new", 1.1, None, None, None, None, "far too small"],
    ]
    assert made.axis == [(0.0, "0"), (0.5, "100 %"), (1.0, "200 %")]
    assert made.order == [0.5, None, 50.0]
    assert made.colours == {look.label: look.colour}
    assert not made.raw, "its values are in columns of their own"

"""What the table ``capacity`` knows of a workload, and where each number comes from."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lagwise.domain.humanise import significant
from lagwise.domain.sizing.group_workload import known_values

NOW = datetime(2026, 11, 22, 12, 20, tzinfo=UTC)


def by_members(*inputs: dict[str, Any]) -> dict[str, Any]:
    """A group that was seen under saturation: the time per message as a whole is known."""
    return {
        "t1_seconds": 0.004, "t2_seconds": None, "cores": None, "partitions": 48, "hottest_share": None,
        "peak_rate_per_second": 900.0, "forecast_peak_rate_per_second": None, "max_threads_per_node": 1,
        "unit": "member", "capacity_source": "saturation", "concurrency": None, "inputs": list(inputs),
        "objective_seconds": None, "planned_objective_rate_per_second": None,
    }  # fmt: skip


def measured(name: str, value: float) -> dict[str, Any]:
    at = NOW - timedelta(minutes=3)
    return {"name": name, "value": value, "source": "probe", "samples": 50_000, "measured_at": at}


def test_what_a_probe_without_cores_measured_is_from_the_probe_and_no_default() -> None:
    values, sources = known_values(by_members(measured("t1_seconds", 0.003), measured("t2_seconds", 0.001)), NOW)
    assert (values["seconds_per_message"], values["t1_seconds"], values["t2_seconds"]) == (0.004, 0.003, 0.001)
    assert sources["t1_seconds"] == sources["t2_seconds"] == "probe, from 50,000 messages, 3 min ago"
    assert sources["seconds_per_message"] == "as seen under saturation, a member taken as one thread"
    assert "cores" not in values


def test_every_value_has_its_source_and_no_other() -> None:
    for row in (by_members(), by_members(measured("t2_seconds", 0.001))):
        values, sources = known_values(row, NOW)
        assert values.keys() == sources.keys()
    assert "t1_seconds" not in values


@pytest.mark.parametrize("peak", [0.01234, 12.34, 99.96, 357.2, 357.6, 29_524.3, 3_401_234.5])
def test_a_peak_is_planned_with_as_it_is_shown(peak: float) -> None:
    values, _ = known_values(by_members() | {"peak_rate_per_second": peak}, NOW)
    assert significant(values["peak_rate_per_second"]) == significant(peak)

"""The whole advice as figures: one line a number, as exact as it is known."""

from collections.abc import Iterable
from dataclasses import asdict

from lagwise.domain.sizing.advice import SizingAdvice, inputs_of
from lagwise.domain.sizing.group_workload import missing_sentence
from lagwise_dashboard.csv_export import rows_as_csv
from lagwise_dashboard.report.capacity_report import CapacityReport


def as_csv(report: CapacityReport) -> str:
    """One line a number, as exact as it is known: section, name, value, unit, where from or why."""
    return rows_as_csv([("section", "name", "value", "unit", "note"), *_lines(report)])


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else str(value)


def _lines(report: CapacityReport) -> Iterable[tuple[object, ...]]:
    advice, row = report.advice, report.row
    if row is not None:
        for name in ("cluster", "group", "topic", "verdict", "sentence", "confidence", "capacity_source"):
            yield "verdict", name, row[name], "", ""
        for name in ("as_of", "enough_until"):
            yield "verdict", name, row[name].isoformat() if row[name] else None, "", ""
        for name in (
            "capacity_low_per_second", "capacity_high_per_second", "demand_per_second", "forecast_demand_per_second",
            "forecast_demand_high_per_second", "forecast_peak_rate_per_second", "planned_objective_rate_per_second",
        ):  # fmt: skip
            yield "verdict", name, row[name], "messages/s", ""
        for item in row["inputs"]:
            samples = "" if item["samples"] is None else f", from {item['samples']}"
            at = "" if item["measured_at"] is None else f", {item['measured_at'].isoformat()}"
            yield "rests on", item["name"], item["value"], "", f"{item['source']}{samples}{at}"
    if advice is None:
        yield "advice", "verdict", missing_sentence(report.missing), "", ""
    else:
        yield from _advice(advice, report)
    for day in report.outlook.days if report.outlook else ():
        yield "forecast", day.at.isoformat(), day.peak, "messages/s", f"90 %: {day.low:.6g} to {day.high:.6g}"


def _advice(advice: SizingAdvice, report: CapacityReport) -> Iterable[tuple[object, ...]]:
    for name, value in inputs_of(advice.workload).items():
        yield "asked", name, _plain(value), "", report.sources.get(name, "default")
    yield "advice", "verdict", advice.verdict, "", ""
    for name, value in asdict(advice.triple).items() if advice.triple else ():
        yield "advice", name, value, "", ""
    for name, value in report.slots.as_document().items() if report.slots else ():
        yield "task slots", name, value, "", ""
    for change in advice.changes:
        yield "change", str(change.kind), change.sentence, "", change.cost
    for figure in advice.figures:
        yield "figure", figure.label, figure.value, figure.unit, figure.how
    for label, outcome in report.what_if.outcomes if report.what_if else ():
        question = report.what_if.question if report.what_if else ""
        yield "what if", f"{label}: peak lag", outcome.peak_lag, "messages", question
        yield "what if", f"{label}: oldest unread", outcome.peak_lag_seconds, "s", question
        yield "what if", f"{label}: drained after", outcome.drain_seconds, "s", question
    for one in report.scenarios:
        for name, value in inputs_of(one.advice.workload).items():
            yield "scenario", f"{one.name}: {name}", _plain(value), "", "asked"
        for name, value in asdict(one.advice.triple).items() if one.advice.triple else ():
            yield "scenario", f"{one.name}: {name}", value, "", "advised"
        if one.outcome is not None:
            yield "scenario", f"{one.name}: peak lag", one.outcome.peak_lag, "messages", "what if"
            yield "scenario", f"{one.name}: drained after", one.outcome.drain_seconds, "s", "what if"
    for step in report.ramp:
        yield "ramp", step.expected.threads, step.expected.rate_per_second, "messages/s", step.stop

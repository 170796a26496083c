"""The answer of ``lagwise size`` as a document. It equals that of the Capacity page."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from lagwise.domain.capacity.outlook import provenance
from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.simulation.scenario import DEFAULT_OUTAGE_SECONDS
from lagwise.domain.simulation.what_if import WhatIf, outage, running_set_up, set_ups, try_set_ups
from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.group_workload import missing_sentence, running_of
from lagwise.domain.sizing.ramp_plan import RampStep, ramp_to
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Workload
from lagwise_app.size.group_capacity import MeasuredGroup, row_as_asked
from lagwise_dashboard.report.capacity_report import CapacityReport


def sizing_report(
    workload: Workload | None,
    known: MeasuredGroup | None,
    *,
    missing: tuple[str, ...],
    sources: Mapping[str, str],
    target_utilisation: float,
    now: datetime,
) -> CapacityReport:
    """The advice for a workload and for the group that is known. Without a workload, ``missing`` names what it lacks.

    Raises OutOfRange.
    """
    advice = None
    if workload is not None:
        target_utilisation = workload.target_utilisation
        advice = advise(workload, known.downstream if known else None)
    report = CapacityReport(
        advice=advice, missing=missing, sources=sources, target_utilisation=target_utilisation, now=now
    )
    if known is None:
        return report
    report = replace(report, row=row_as_asked(known, advice, target_utilisation), outlook=known.outlook)
    if advice is None:
        return report
    running = running_set_up(running_of(report.row))
    tried = set_ups(advice, running)
    try:
        what_if = try_set_ups(advice.workload, tried, outage(DEFAULT_OUTAGE_SECONDS)) if tried else None
    except OutOfRange:
        what_if = None  # too many nodes or partitions to simulate; the rest of the answer holds
    return replace(report, what_if=what_if, ramp=ramp_to(advice, running.threads_per_node if running else None))


def as_document(report: CapacityReport, inputs: Mapping[str, Any], load_test: str | None) -> dict[str, Any]:
    """The answer as JSON. The ``inputs`` are shown where there is no advice."""
    if report.advice is not None:
        document = report.advice.as_document(report.sources)
    else:
        document = {
            **dict.fromkeys(("feasible", "triple", "binds")),
            "verdict": missing_sentence(report.missing),
            "changes": [],
            "inputs": {name: {"value": value, "source": report.sources[name]} for name, value in inputs.items()},
            "figures": {},
            "node": [],
            "downstream_full": None,
        }
    if report.row is None:
        return document
    is_undecided = report.row["verdict"] == CapacityVerdict.UNDECIDED
    outlook, slots, what_if = report.outlook, report.slots, report.what_if
    days = [asdict(day) for day in outlook.days] if outlook else []
    return {
        "group": report.row,
        "load_test": load_test if is_undecided else None,
        "missing": report.missing,
        **document,
        "slots": slots.as_document() if slots else None,
        "forecast": {"sentence": provenance(outlook, report.now), "days": days} if outlook else None,
        "what_if": _what_if_document(what_if) if what_if else None,
        "ramp": [_step_document(step) for step in report.ramp],
    }


def _what_if_document(what_if: WhatIf) -> dict[str, Any]:
    figures = ("peak_lag", "peak_lag_seconds", "drain_seconds")
    outcomes = [
        {"set_up": label, **{name: getattr(outcome, name) for name in figures}} for label, outcome in what_if.outcomes
    ]
    return {"question": what_if.question, "outcomes": outcomes}


def _step_document(step: RampStep) -> dict[str, Any]:
    return {
        "threads": step.expected.threads,
        "rate_per_second": step.expected.rate_per_second,
        "core_utilisation": step.expected.core_utilisation,
        "gain_per_second": step.gain_per_second,
        "watch": step.watch,
        "stop": step.stop,
    }

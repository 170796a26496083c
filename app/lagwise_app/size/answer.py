"""The answer of ``lagwise size``, for the terminal, as JSON and as files. It equals that of the Capacity page."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from lagwise.domain.capacity.outlook import Outlook, provenance
from lagwise.domain.capacity.verdict import CapacityVerdict, DemandAhead
from lagwise.domain.simulation.scenario import DEFAULT_OUTAGE_SECONDS
from lagwise.domain.simulation.what_if import WhatIf, outage, running_set_up, set_ups, try_set_ups
from lagwise.domain.sizing.advice import SizingAdvice, advise
from lagwise.domain.sizing.downstream import DownstreamFull
from lagwise.domain.sizing.group_workload import (
    downstream_of,
    known_values,
    missing_sentence,
    running_of,
    task_slots_of,
)
from lagwise.domain.sizing.ramp_plan import RampStep, ramp_to
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise.domain.sizing.workload import Workload
from lagwise.tables.store import Lake
from lagwise_app.size.group_capacity import capacity_row, demand_within, load_test_for, planned_peak, row_within_horizon


@dataclass(slots=True)
class SizingAnswer:
    """What is known of a group, where one is given, and the advice once :meth:`settle` has the inputs."""

    now: datetime
    target_utilisation: float
    #: The group's row of `capacity`; None without a group.
    row: dict[str, Any] | None = None
    #: Inputs of a Workload that are known of the group.
    known_inputs: Mapping[str, Any] = field(default_factory=dict)
    #: The source of each of them.
    known_sources: Mapping[str, str] = field(default_factory=dict)
    outlook: Outlook | None = None
    #: The forecast up to the requested horizon; None without a horizon.
    ahead: tuple[DemandAhead, ...] | None = None
    load_test: str | None = None
    #: Evidence that the downstream is full; None where that is unknown or the inputs assume another downstream.
    downstream: DownstreamFull | None = None
    advice: SizingAdvice | None = None
    missing: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    what_if: WhatIf | None = None
    ramp: tuple[RampStep, ...] = ()

    @classmethod
    def of_group(
        cls,
        lake: Lake,
        named: tuple[str | None, str, str | None],
        horizon_seconds: float | None,
        target_utilisation: float,
        now: datetime,
    ) -> "SizingAnswer":
        """What is known of the group ``named`` by cluster, group and topic. Raises LagwiseError and UsageError."""
        from lagwise_dashboard.queries import capacity as queries

        cluster, group, topic = named
        row = capacity_row(lake, group, cluster, topic)
        known, sources = known_values(row, now)
        known["target_utilisation"], sources["target_utilisation"] = target_utilisation, "settings"
        outlook, ahead = queries.outlook(lake, row["cluster"], row["topic"], now), None
        if horizon_seconds is not None:
            ahead = demand_within(lake, row, horizon_seconds, now)
            known["peak_rate_per_second"], sources["peak_rate_per_second"] = planned_peak(row, ahead)
            until = now + timedelta(seconds=horizon_seconds)
            outlook = replace(outlook, days=tuple(day for day in outlook.days if day.at <= until))
        test = load_test_for(lake, row, known.get("peak_rate_per_second"), target_utilisation)
        return cls(now, target_utilisation, row, known, sources, outlook, ahead, test, downstream_of(row))

    def settle(self, workload: Workload | None, missing: tuple[str, ...], sources: Mapping[str, str]) -> None:
        """Work out the advice. Without a workload, ``missing`` names the inputs that it lacks."""
        self.missing, self.sources = missing, sources
        self.advice = advice = advise(workload, self.downstream) if workload is not None else None
        if workload is not None:
            self.target_utilisation = workload.target_utilisation
        if self.row is not None and self.ahead is not None:
            self.row = row_within_horizon(self.row, self.ahead, advice, self.target_utilisation, self.load_test)
        if advice is None or self.row is None:
            return
        running = running_set_up(running_of(self.row))
        tried = set_ups(advice, running)
        self.ramp = ramp_to(advice, running.threads_per_node if running else None)
        try:
            self.what_if = try_set_ups(advice.workload, tried, outage(DEFAULT_OUTAGE_SECONDS)) if tried else None
        except OutOfRange:
            self.what_if = None  # too many nodes or partitions to simulate; the rest of the answer holds

    @property
    def verdict(self) -> str:
        """The advice as a sentence, or why there is none."""
        return self.advice.verdict if self.advice else missing_sentence(self.missing)

    @property
    def slots(self) -> TaskSlots | None:
        """Whether the Flink cluster has the task slots for the advice; None where the group is not a Flink job."""
        return task_slots_of(self.row, self.advice)

    def as_document(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The answer as JSON. ``values`` are the inputs, which are shown where there is no advice."""
        if self.advice is not None:
            made = self.advice.as_document(self.sources)
        else:
            nothing = dict.fromkeys(("feasible", "triple", "binds"))
            inputs = {name: {"value": value, "source": self.sources[name]} for name, value in values.items()}
            empty: dict[str, Any] = {
                "changes": [],
                "inputs": inputs,
                "figures": {},
                "node": [],
                "downstream_full": None,
            }
            made = {**nothing, "verdict": self.verdict, **empty}
        if self.row is None:
            return made
        is_undecided = self.row["verdict"] == CapacityVerdict.UNDECIDED
        about = {"group": self.row, "load_test": self.load_test if is_undecided else None, "missing": self.missing}
        slots = self.slots.as_document() if self.slots else None
        ahead = {"forecast": self._forecast(), "what_if": self._what_if(), "ramp": self._ramp()}
        return about | made | {"slots": slots} | ahead

    def _forecast(self) -> dict[str, Any] | None:
        if self.outlook is None:
            return None
        days = [asdict(day) for day in self.outlook.days]
        return {"sentence": provenance(self.outlook, self.now), "days": days}

    def _what_if(self) -> dict[str, Any] | None:
        if self.what_if is None:
            return None
        outcomes = [
            {
                "set_up": label,
                "peak_lag": outcome.peak_lag,
                "peak_lag_seconds": outcome.peak_lag_seconds,
                "drain_seconds": outcome.drain_seconds,
            }
            for label, outcome in self.what_if.outcomes
        ]
        return {"question": self.what_if.question, "outcomes": outcomes}

    def _ramp(self) -> list[dict[str, Any]]:
        return [
            {
                "threads": step.expected.threads,
                "rate_per_second": step.expected.rate_per_second,
                "core_utilisation": step.expected.core_utilisation,
                "gain_per_second": step.gain_per_second,
                "watch": step.watch,
                "stop": step.stop,
            }
            for step in self.ramp
        ]


def write_files(answer: SizingAnswer, html_file: Path | None, csv_file: Path | None) -> None:
    """Write the requested files, and report each on stderr.

    Raises OSError, and ModuleNotFoundError where the package for the charts is missing.
    """
    from lagwise_dashboard.report.capacity_report import CapacityReport

    report = CapacityReport(
        advice=answer.advice,
        missing=answer.missing,
        sources=answer.sources,
        row=answer.row,
        outlook=answer.outlook,
        what_if=answer.what_if,
        ramp=answer.ramp,
        target_utilisation=answer.target_utilisation,
        now=answer.now,
    )
    if csv_file is not None:
        from lagwise_dashboard.report.csv_file import as_csv

        csv_file.write_text(as_csv(report), encoding="utf-8", newline="")
        click.echo(f"wrote {csv_file}", err=True)
    if html_file is not None:
        from lagwise_dashboard.report.html_file import as_html

        html_file.write_text(as_html(report), encoding="utf-8")
        click.echo(f"wrote {html_file}", err=True)

"""The whole advice to take away: figures as CSV, and a report of one HTML file that needs nothing else."""

import csv
import html
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime

import plotly.graph_objects as go
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.words import explain_concurrency
from lagwise_dashboard import literal, words
from lagwise_dashboard.components import (
    capacity_answer,
    capacity_chart,
    capacity_command,
    capacity_forecast,
    capacity_ramp,
    capacity_scenarios,
    capacity_standing,
    capacity_what_if,
)
from lagwise_dashboard.components.capacity_scenarios import Compared
from lagwise_dashboard.components.capacity_what_if import WhatIf
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.capacity import Outlook

#: A spreadsheet takes a text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: Nothing is loaded from anywhere, whatever a name tries.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1e293b; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #e2e8f0; padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: top; }
th { color: #64748b; font-weight: 500; }
h1, p, pre { overflow-wrap: anywhere; } pre { white-space: pre-wrap; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.verdict { border-left: 4px solid #0d9488; padding: .3rem 1rem; background: #f1f5f9; }
small { color: #64748b; }
"""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page shows."""

    advice: SizingAdvice
    row: Row | None
    outlook: Outlook | None
    what_if: WhatIf | None
    scenarios: tuple[Compared, ...]
    ramp: tuple[RampStep, ...]
    target_utilisation: float
    now: datetime


@dataclass(slots=True)
class _Shown:
    """What the page shows at this moment, and whether its buttons were drawn as ones that can be clicked."""

    report: Report | None = None
    can_be_clicked: bool | None = None


def _shown() -> _Shown:
    kept: _Shown = st.session_state.setdefault("capacity_shown", _Shown())
    return kept


def keep(report: Report | None) -> None:
    """From now on the buttons give this; None where there is nothing to take away."""
    shown = _shown()
    shown.report = report
    is_drawn_otherwise = shown.can_be_clicked not in (None, report is not None)
    shown.can_be_clicked = report is not None
    if is_drawn_otherwise:
        st.rerun()


def show() -> None:
    """Two buttons; a file is made when it is asked for, of what the page shows then.

    They are not part of what is refreshed: Streamlit forgets at every refresh how the file of the button before it is
    made, and a click that comes before the browser has the new button is lost.
    """
    shown = _shown()
    with st.container(horizontal=True):
        _button("Figures as CSV", "csv", "text/csv", shown, as_csv)
        _button("Report as HTML", "html", "text/html", shown, as_html)


def _button(label: str, kind: str, mime: str, shown: _Shown, made: Callable[[Report], str]) -> None:
    def data() -> bytes:
        assert shown.report is not None, "the button cannot be clicked"
        return made(shown.report).encode()

    st.download_button(
        label,
        data=data,
        file_name=f"lagwise-capacity.{kind}",
        mime=mime,
        key=f"capacity_{kind}",
        on_click="ignore",
        icon=":material/download:",
        disabled=not shown.can_be_clicked,
    )


def as_csv(report: Report) -> str:
    """One line a number, as exact as it is known: section, name, value, unit, where from or why."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(("section", "name", "value", "unit", "note"))
    for line in _lines(report):
        writer.writerow([_cell(value) for value in line])
    return made.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        text = literal.shown(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return "" if value is None else value


def _plain(value: object) -> object:
    return value if isinstance(value, int | float) else str(value)


def _lines(report: Report) -> Iterable[tuple[object, ...]]:
    advice, row = report.advice, report.row
    if row is not None:
        for name in ("cluster", "group", "topic", "verdict", "sentence", "confidence", "capacity_source"):
            yield "verdict", name, row[name], "", ""
        for name in ("as_of", "enough_until"):
            yield "verdict", name, row[name].isoformat() if row[name] else None, "", ""
        for name in ("capacity_low_per_second", "capacity_high_per_second", "forecast_peak_rate_per_second"):
            yield "verdict", name, row[name], "messages/s", ""
        for told in row["inputs"]:
            samples = "" if told["samples"] is None else f", from {told['samples']}"
            at = "" if told["measured_at"] is None else f", {told['measured_at'].isoformat()}"
            yield "rests on", told["name"], told["value"], "", f"{told['source']}{samples}{at}"
    for of in fields(advice.workload):
        value = getattr(advice.workload, of.name)
        yield "asked", of.name, None if value is None else _plain(value), "", ""
    yield "advice", "verdict", advice.verdict, "", ""
    for name, value in asdict(advice.triple).items() if advice.triple else ():
        yield "advice", name, value, "", ""
    for change in advice.changes:
        yield "change", str(change.kind), change.sentence, "", change.cost
    for figure in advice.figures:
        yield "figure", figure.label, figure.value, figure.unit, figure.how
    for day in report.outlook.days if report.outlook else ():
        yield "forecast", day.at.isoformat(), day.peak, "messages/s", f"90 %: {day.low:.6g} to {day.high:.6g}"
    for set_up, outcome in report.what_if.outcomes if report.what_if else ():
        question = report.what_if.question if report.what_if else ""
        yield "what if", f"{set_up.label}: peak lag", outcome.peak_lag, "messages", question
        yield "what if", f"{set_up.label}: oldest unread", outcome.peak_lag_seconds, "s", question
        yield "what if", f"{set_up.label}: drained after", outcome.drain_seconds, "s", question
    for one in report.scenarios:
        for name, value in asdict(one.advice.workload).items():
            yield "scenario", f"{one.name}: {name}", None if value is None else _plain(value), "", "asked"
        for name, value in asdict(one.advice.triple).items() if one.advice.triple else ():
            yield "scenario", f"{one.name}: {name}", value, "", "advised"
        if one.outcome is not None:
            yield "scenario", f"{one.name}: peak lag", one.outcome.peak_lag, "messages", "what if"
            yield "scenario", f"{one.name}: drained after", one.outcome.drain_seconds, "s", "what if"
    for step in report.ramp:
        yield "ramp", step.expected.threads, step.expected.rate_per_second, "messages/s", step.stop


def as_html(report: Report) -> str:
    """The report. Everything that is not of our own making is escaped, and it loads nothing."""
    advice, row = report.advice, report.row
    about = "a workload" if row is None else f"{row['group']} on {row['topic']} ({row['cluster']})"
    parts = [
        f"<h1>Capacity of {_safe(about)}</h1>",
        f"<p><small>By Lagwise, {_safe(humanise.clock(report.now, report.now))}, {report.now:%Y-%m-%d}.</small></p>",
    ]
    charts = _Charts()
    if row is not None:
        parts += _standing(report, row, charts)
    parts += ["<h2>What it takes</h2>", f'<p class="verdict">{_safe(advice.verdict)}</p>']
    parts += [f"<p>{_safe(c.sentence)} <small>{_safe(c.cost)}</small></p>" for c in advice.changes]
    parts += [
        charts.add(capacity_chart.chart(advice)),
        _table(
            {
                "Figure": [f.label for f in advice.figures],
                "Value": [capacity_answer.say_value(f.name, f.value) for f in advice.figures],
                "Unit": [f.unit for f in advice.figures],
                "Made of": [f.how for f in advice.figures],
            }
        ),
        f"<p>{_safe(explain_concurrency(advice.workload, advice.threads))}</p>",
        f"<pre>{_safe(capacity_command.command(advice.workload))}</pre>",
    ]
    if report.what_if is not None:
        parts += [
            "<h2>What if</h2>",
            f"<p>{_safe(report.what_if.question)}</p>",
            charts.add(capacity_what_if.chart(report.what_if)),
            *(f"<p>{_safe(s.label)}. {_safe(capacity_what_if.words(o))}</p>" for s, o in report.what_if.outcomes),
        ]
    if report.scenarios:
        parts += ["<h2>Scenarios</h2>", _table(capacity_scenarios.columns(report.scenarios))]
    if report.ramp:
        parts += ["<h2>How to get there</h2>", _table(capacity_ramp.columns(report.ramp))]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>Capacity of {_safe(about)}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _standing(report: Report, row: Row, charts: "_Charts") -> list[str]:
    label = words.capacity_look(row["verdict"]).label
    names = ("Input", "Value", "Where from", "Samples", "Age")
    inputs = capacity_standing.input_rows(row, report.now)
    parts = [
        f'<p class="verdict"><b>{_safe(label)}</b> {_safe(row["sentence"])}</p>',
        _table(
            {
                "Peak so far": [capacity_standing.per_second(row["peak_rate_per_second"])],
                "Can do": [capacity_standing.can_do(row)],
                "Forecast peak": [capacity_standing.per_second(row["forecast_peak_rate_per_second"])],
                "Enough until": [capacity_standing.enough_until(row)],
                "Confidence": [row["confidence"]],
            }
        ),
        "<h2>What this rests on</h2>",
        _table({name: [line[i] for line in inputs] for i, name in enumerate(names)}),
    ]
    if report.outlook is not None:
        parts.append("<h2>What will arrive</h2>")
        if report.outlook.days:
            parts.append(charts.add(capacity_forecast.chart(row, report.outlook, report.target_utilisation)))
        parts.append(f"<p><small>{_safe(capacity_forecast.provenance(report.outlook, report.now))}</small></p>")
    return parts


class _Charts:
    """Figures as HTML; the first brings the library for all."""

    def __init__(self) -> None:
        self._is_first = True

    def add(self, made: go.Figure) -> str:
        made.update_layout(paper_bgcolor="white", plot_bgcolor="white")
        found: str = made.to_html(full_html=False, include_plotlyjs=self._is_first, config={"displaylogo": False})
        self._is_first = False
        return found


def _safe(text: object) -> str:
    return html.escape(literal.shown(str(text))) if text else ""


def _table(columns: Mapping[str, Sequence[str]]) -> str:
    head = "".join(f"<th>{_safe(name)}</th>" for name in columns)
    lines = zip(*columns.values(), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>"

"""The whole advice as a report: one HTML file that needs nothing else."""

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise.domain.simulation.what_if import outcome_sentence
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.advice_text import explain_concurrency
from lagwise.domain.sizing.group_workload import missing_sentence
from lagwise_dashboard import appearance, escaping, tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report import (
    advice_tables,
    current_capacity,
    forecast_chart,
    node_chart,
    scenarios,
    svg,
    what_if_chart,
)
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.report.command import command
from lagwise_dashboard.tables import TableColumn

#: Nothing is loaded from anywhere and no script runs, whatever a name tries.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1e293b; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #e2e8f0; padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: top; }
th { color: #64748b; font-weight: 500; }
h1, p, pre { overflow-wrap: anywhere; } pre { white-space: pre-wrap; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.verdict { border-left: 4px solid #0d9488; padding: .3rem 1rem; background: #f1f5f9; }
.short { border-color: #dc2626; } .tight { border-color: #d97706; } .undecided { border-color: #64748b; }
small { color: #64748b; }
.chart { overflow-x: auto; } .chart > svg { display: block; width: 100%; min-width: 40rem; }
"""


def as_html(report: CapacityReport) -> str:
    """The report. Everything that is not of our own making is escaped, and it loads nothing."""
    advice, row = report.advice, report.row
    about = "a workload" if row is None else f"{row['group']} on {row['topic']} ({row['cluster']})"
    parts = [
        f"<h1>Capacity of {_safe(about)}</h1>",
        f"<p><small>By Lagwise, {_safe(humanise.clock(report.now, report.now))}, {report.now:%Y-%m-%d}.</small></p>",
    ]
    if row is not None and report.cluster_note:
        parts.append(f"<p><b>Cluster {_safe(row['cluster'])}:</b> {_safe(report.cluster_note)}</p>")
    if row is not None:
        parts += _standing(report, row)
    parts.append("<h2>What it takes</h2>")
    if advice is None:
        parts.append(f'<p class="verdict undecided">{_safe(missing_sentence(report.missing))}</p>')
    else:
        parts += _advice(report, advice)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>Capacity of {_safe(about)}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _advice(report: CapacityReport, advice: SizingAdvice) -> list[str]:
    """What it takes, what it is made of, what if, and how to get there."""
    kind = "short" if advice.triple is None else "enough"
    parts = [f'<p class="verdict {kind}">{_safe(advice.verdict)}</p>']
    if report.row is not None and (entered := advice_tables.entered_inputs(advice.workload, report.sources)):
        # Without this sentence the verdict on a peak that was made up contradicts the one on the group.
        parts.insert(0, f"<p>What if, not what was measured. Entered by hand: {_safe(entered)}.</p>")
    if report.slots is not None:
        parts.append(f"<p>{_safe(report.slots.sentence)}</p>")
    parts += [f"<p>{_safe(c.sentence)} <small>{_safe(c.cost)}</small></p>" for c in advice.changes]
    if advice.points:
        parts.append(_chart(node_chart.chart(advice)))
    parts += [
        _table(advice_tables.input_columns(advice.workload, report.sources)),
        _table(advice_tables.figure_columns(advice.figures)),
    ]
    if advice.downstream is None:  # else the command would ask with a T1 that is what a full downstream makes of it
        parts += [
            f"<p>{_safe(explain_concurrency(advice.workload, advice.threads))}</p>",
            f"<pre>{_safe(command(advice.workload))}</pre>",
        ]
    if report.what_if is not None:
        parts += [
            "<h2>What if</h2>",
            f"<p>{_safe(report.what_if.question)}</p>",
            _chart(what_if_chart.chart(report.what_if)),
            *(f"<p>{_safe(label)}. {_safe(outcome_sentence(o))}</p>" for label, o in report.what_if.outcomes),
        ]
    if report.scenarios:
        parts += ["<h2>Scenarios</h2>", _table(scenarios.columns(report.scenarios))]
    if report.ramp:
        parts += ["<h2>How to get there</h2>", _table(advice_tables.ramp_columns(report.ramp))]
    return parts


def _standing(report: CapacityReport, row: Row) -> list[str]:
    label = appearance.of_capacity_verdict(row["verdict"]).label
    parts = [
        f'<p class="verdict {_safe(row["verdict"])}"><b>{_safe(label)}</b> {_safe(row["sentence"])}</p>',
        _table(
            [
                tables.text("Peak so far", [current_capacity.per_second(row["peak_rate_per_second"])]),
                tables.text(
                    f"{current_capacity.objective_label(row)}, with forecast",
                    [current_capacity.per_second(row["planned_objective_rate_per_second"])],
                ),
                tables.text("Can do", [current_capacity.can_do(row)]),
                tables.text("Forecast peak", [current_capacity.per_second(row["forecast_peak_rate_per_second"])]),
                tables.text("Enough until", [current_capacity.enough_until(row)]),
                tables.text("Confidence", [row["confidence"]]),
            ]
        ),
        "<h2>What this rests on</h2>",
        _table(current_capacity.inputs(row, report.now)),
    ]
    if report.outlook is not None:
        parts.append("<h2>What will arrive</h2>")
        if report.outlook.days:
            parts.append(_chart(forecast_chart.chart(row, report.outlook, report.target_utilisation)))
        parts.append(f"<p><small>{_safe(current_capacity.forecast_note(row, report.outlook, report.now))}</small></p>")
    return parts


def _chart(made: go.Figure) -> str:
    return f'<div class="chart">{svg.draw(made)}</div>'


def _safe(text: object) -> str:
    return html.escape(escaping.visible(str(text))) if text else ""


def _table(columns: Sequence[TableColumn]) -> str:
    head = "".join(f"<th>{_safe(column.title)}</th>" for column in columns)
    lines = zip(*(column.cells for column in columns), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>"

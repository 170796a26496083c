"""The incidents of the last day on one time axis: a lane for each subject, and the messages about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise_alerts.operate import Alert, IncidentMessage, MuteCause, Silence
from lagwise_dashboard import escaping, plot_theme, time_zone
from lagwise_dashboard.alert_reader import ESCALATED
from lagwise_dashboard.pages.alerts import alert_tables
from lagwise_dashboard.pages.alerts.alert_tables import OpenAlert
from lagwise_dashboard.widgets import alert_words

#: What the time axis may show.
SPANS = tuple(timedelta(minutes=one) for one in (15, 30, 60, 120, 180, 240, 360, 480, 720, 1440))
#: Lanes that can be told apart: those of open alerts come first, then those of the latest ended ones.
MAX_LANES = 25
_LANE, _ABOVE = 22, 60
_PENDING, _COVERED, _FIRING = "pending", "covered by another alert", "firing"
_ACKNOWLEDGED, _SILENCED = "acknowledged", "silenced"
#: Mid-tones, as all marks of charts; each also has a height of its own, so that colour is not the only sign.
_BARS = {
    _PENDING: ("#64748B", 0.2),
    _COVERED: ("#D97706", 0.12),
    _FIRING: ("#DC2626", 0.72),
    _ACKNOWLEDGED: ("#3B82F6", 0.5),
    _SILENCED: ("#8B5CF6", 0.35),
}
#: Messages by their state: what they are called, and their sign.
_MESSAGES = {
    "delivered": ("delivered", "circle", "#0D9488"),
    "queued": ("queued", "circle-open", "#D97706"),
    "dead": ("undelivered", "x", "#DC2626"),
}
_WHITE = "#FFFFFF"
#: No bar is shorter than such a part of the span: it could not be seen.
_STEPS = 400
_MAX_NAME_LENGTH, _MAX_TEXT_LENGTH = 44, 160


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of an incident in one state. ``until`` None: it is ongoing."""

    kind: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Lane:
    """All incidents of a subject, by the ids of which messages find it."""

    name: str
    segments: list[Segment]
    incident_ids: frozenset[str]


def span(alerts: Sequence[OpenAlert], ended: Sequence[Alert], now: datetime) -> timedelta:
    """The shortest of some spans up to now that has all these incidents from their beginnings, or else the longest."""
    began = [one.alert.started_at for one in alerts]
    began += [one.started_at for one in ended if one.resolved_at is not None and one.resolved_at > now - SPANS[-1]]
    return next((one for one in SPANS if min(began, default=now) >= now - one), SPANS[-1])


def lanes(
    alerts: Sequence[OpenAlert], ended: Sequence[Alert], silences: Sequence[Silence], since: datetime
) -> list[Lane]:
    """A lane for each subject with an incident since then: open ones first, in this order, then those that ended."""
    starts = {f"{one.id}": one.starts_at for one in silences}
    found: dict[str, list[tuple[Alert, list[Segment]]]] = {}
    for one in alerts:
        found.setdefault(one.alert.fingerprint, []).append((one.alert, list(_open_segments(one, starts))))
    for alert in ended:
        if alert.resolved_at is not None and alert.resolved_at > since:
            found.setdefault(alert.fingerprint, []).append((alert, list(_segments(alert, alert.resolved_at))))
    return [
        Lane(
            alert_words.about(its[0][0]),
            [segment for _, segments in its for segment in segments],
            frozenset(alert.incident_id for alert, _ in its),
        )
        for its in found.values()
    ]


def _segments(alert: Alert, until: datetime | None) -> Iterator[Segment]:
    if alert.fired_at is None or alert.fired_at > alert.started_at:
        yield Segment(_PENDING, alert.started_at, alert.fired_at or until)
    if alert.fired_at is not None:
        yield Segment(_FIRING, alert.fired_at, until)


def _open_segments(one: OpenAlert, starts: Mapping[str, datetime]) -> Iterator[Segment]:
    """Pending and firing, or covered, then what operators did about it; of a maintenance window only that it holds is
    known."""
    if alert_tables.is_covered(one.alert):
        yield Segment(_COVERED, one.alert.started_at, None)
    else:
        yield from _segments(one.alert, None)
    muted, acknowledged = one.state.muted, one.state.acknowledged
    if muted is not None and muted.cause is MuteCause.SILENCE and muted.name in starts:
        yield Segment(_SILENCED, max(starts[muted.name], one.alert.started_at), None)
    if acknowledged is not None:
        yield Segment(_ACKNOWLEDGED, acknowledged.at, None)


def chart(shown: Sequence[Lane], messages: Sequence[IncidentMessage], since: datetime, until: datetime) -> go.Figure:
    """The lanes from ``since`` to ``until``; what began earlier begins at the left end.

    A message in a summary has a sign on its own lane, at the time of the summary.
    """
    made = plot_theme.figure(height=_ABOVE + _LANE * len(shown), zoom="day")
    for kind, (colour, width) in _BARS.items():
        bars = [(lane, one) for lane, its in enumerate(shown) for one in its.segments if one.kind == kind]
        if bars:
            _draw(made, bars, shown, since, until, kind=kind, colour=colour, width=width)
    by_incident = {name: lane for lane, its in enumerate(shown) for name in its.incident_ids}
    placed = [(by_incident[one.incident_id], one) for one in messages if one.incident_id in by_incident]
    raised = [(y, one) for y, one in placed if one.event == ESCALATED]
    # White, below the sign of the message: an outline would not be seen on a bar.
    _mark(made, raised, since, name=ESCALATED, symbol="triangle-up", colour=_WHITE, size=18)
    for state, (name, symbol, colour) in _MESSAGES.items():
        _mark(
            made, [(y, one) for y, one in placed if one.state == state], since, name=name, symbol=symbol, colour=colour
        )
    made.update_layout(hovermode="closest", barmode="overlay", bargap=0.2)
    made.update_xaxes(range=[since, until])
    made.update_yaxes(
        tickvals=list(range(len(shown))),
        ticktext=[escaping.plotly(lane.name, max_length=_MAX_NAME_LENGTH) for lane in shown],
        range=[len(shown) - 0.5, -0.5],
        showgrid=False,
        rangemode="normal",
    )
    return made


def _draw(
    made: go.Figure, bars: Sequence[tuple[int, Segment]], shown: Sequence[Lane], since: datetime, until: datetime,
    *, kind: str, colour: str, width: float,
) -> None:  # fmt: skip
    begins = [max(since, one.since) for _, one in bars]
    least = (until - since) / _STEPS
    ends = [max(begin + least, one.until or until) for begin, (_, one) in zip(begins, bars, strict=True)]
    made.add_trace(
        go.Bar(
            orientation="h", y=[lane for lane, _ in bars], base=begins, width=width, name=kind,
            x=[1000 * (end - begin).total_seconds() for begin, end in zip(begins, ends, strict=True)],
            marker={"color": colour, "line": {"width": 0}},
            customdata=[_in_words(shown[lane].name, one, until) for lane, one in bars],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip


def _in_words(name: str, one: Segment, now: datetime) -> str:
    lasted = humanise.duration(round(((one.until or now) - one.since).total_seconds()))
    ongoing = "" if one.until else ", ongoing"
    text = f"{name}: {one.kind} since {time_zone.clock(one.since, now)}, for {lasted}{ongoing}"
    return escaping.plotly(text, max_length=_MAX_TEXT_LENGTH)


def _mark(
    made: go.Figure, messages: Sequence[tuple[int, IncidentMessage]], since: datetime,
    *, name: str, symbol: str, colour: str, size: int = 9,
) -> None:  # fmt: skip
    seen = [(lane, one) for lane, one in messages if one.created_at >= since]
    if not seen:
        return
    # A filled sign is told from the bar that it lies on, and a white one from the page.
    edge = colour if symbol.endswith("open") else "#475569" if colour == _WHITE else _WHITE
    words = [
        f"{one.event} to {one.channel}{' in a summary' if one.in_summary else ''}: {_MESSAGES[one.state][0]}"
        f" ({humanise.plural(one.attempts, 'attempt')})"
        for _, one in seen
    ]
    made.add_trace(
        go.Scatter(
            mode="markers", x=[one.created_at for _, one in seen], y=[lane for lane, _ in seen], name=name,
            marker={"symbol": symbol, "color": colour, "size": size, "line": {"width": 1, "color": edge}},
            customdata=[escaping.plotly(text, max_length=_MAX_TEXT_LENGTH) for text in words],
            hovertemplate="%{x}: %{customdata}<extra></extra>",
        )
    )  # fmt: skip

"""Lines and tables about one group and about freshness, for rich. Names from outside are escaped."""

import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from lagwise.config import AnyCluster
from lagwise.domain.findings import not_told_by
from lagwise.domain.humanise import duration
from lagwise.domain.vocabulary import Status
from lagwise.links.first_commands import first_command
from lagwise.platform.program import program
from lagwise_app.terminal.lake_queries import ClusterFreshness, LakeFreshness
from lagwise_app.terminal.safe_text import full_number, plain, status_text


def console(file: IO[str] | None = None) -> Console:
    """A console as wide as the terminal, or wide enough for any table where there is none."""
    made = Console(file=file or sys.stdout, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = 200
    return made


def group_lines(row: dict[str, Any], clusters: Sequence[AnyCluster], page: str, growth: str) -> Iterator[Text]:
    """A group: its status and why, other findings, what to do first, and how its lag has changed."""
    verdict = plain(row["group"]).append(" is ").append_text(status_text(row["status"], row["reason"]))
    yield verdict.append(" — ").append_text(plain(row["sentence"]))
    if row["what_changed_remedy"] and row["sentence"].endswith(row["what_changed_sentence"]):
        yield _labelled("What would help", row["what_changed_remedy"])
    for finding in not_told_by(row["sentence"], row["findings"]):
        yield _labelled("Also", f"{finding['sentence']} {finding['remedy'] or ''}".rstrip())
    if row["status"] not in (Status.OK, Status.CATCHING_UP, Status.GHOST):
        command = first_command(
            row["cluster"],
            row["group"],
            clusters,
            status=row["status"],
            reason=row["reason"],
            loss_cause=row["loss_cause"],
            topic=row["worst_topic"],
            transaction_seconds=row["transaction_seconds"],
            stands_still=row["stands_still"],
        )
        yield _labelled("First step", command)
        yield _labelled("Dashboard", page)
    if growth:
        yield Text("Lag over ", style="dim").append(growth)


def _labelled(label: str, value: str) -> Text:
    return Text(f"{label}: ", style="dim").append_text(plain(value))


def freshness_lines(fresh: LakeFreshness) -> list[Text]:
    """How old everything is: one line, and one for each cluster with trouble, loudly where it is too old."""
    unreadable = [cluster for cluster in fresh.clusters if cluster.sampled_at is None and cluster.errors]
    if unreadable and not any(cluster.sampled_at for cluster in fresh.clusters):
        return [_unreadable(cluster) for cluster in unreadable]
    if fresh.as_of is None and not any(cluster.sampled_at for cluster in fresh.clusters):
        message = (
            f"No data yet: no collector has written to this lake. Run `{program()} up` or `{program()} collect`, or "
            "choose another lake with --data."
        )
        return [Text(message, style="bold yellow")]
    if fresh.as_of is None:
        return [Text("Sampled, but not analysed yet.", style="bold yellow")]
    several = len(fresh.clusters) > 1
    lines = []
    if not fresh.stale:
        lines.append(Text(f"Data as of {fresh.as_of:%H:%M:%S} UTC, {duration(fresh.age_seconds)} old"))
    for cluster in fresh.clusters:
        name = Text(" of ").append_text(plain(cluster.cluster)) if several else Text("")
        if cluster.stale:
            line = Text("STALE", style="bold white on red").append_text(Text(": data").append_text(name))
            line.append(f" is {duration(cluster.age_seconds)} old" if cluster.as_of else " has not been analysed yet")
            line.append(f"; last sample {_ago(cluster.sample_age_seconds)}")
            lines.append(line.append(f", last analysis {_ago(fresh.analysis_age_seconds)}"))
        if cluster.errors:
            kinds = ", ".join(f"{kind} ×{number}" for kind, number in sorted(cluster.errors.items()))
            line = Text("Errors in the last sample", style="yellow").append_text(name)
            lines.append(line.append(": ").append_text(plain(kinds)))
    return lines


def _unreadable(cluster: ClusterFreshness) -> Text:
    line = Text("The cluster ", style="bold red").append_text(plain(cluster.cluster)).append(" cannot be read: ")
    return line.append_text(plain(", ".join(sorted(cluster.errors)))).append(f"; `{program()} doctor` explains why.")


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{duration(seconds)} ago"


def partition_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        Column("topic", overflow="fold"),
        *(
            Column(name, justify="right", no_wrap=True)
            for name in ("partition", "log start", "committed", "end", "lag", "oldest")
        ),
        Column("status", no_wrap=True),
        Column("member", overflow="fold"),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for row in rows:
        oldest = duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"]))
        table.add_row(
            plain(row["topic"]),
            str(row["partition"]),
            *(full_number(row[key]) for key in ("log_start", "committed", "high_watermark", "lag")),
            oldest,
            status_text(row["status"], row["reason"]),
            plain(row["client_id"]),
        )
    return table

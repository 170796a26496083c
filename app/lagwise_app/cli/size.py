"""``lagwise size``: how many threads, nodes and partitions a workload needs."""

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit, Workload
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise.platform.program import program
from lagwise_app.cli.option_types import duration_type, number, share
from lagwise_app.cli.shared import cluster_option, data_option, json_option, open_lake
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise.tables.store import Lake
    from lagwise_app.size.group_capacity import MeasuredGroup
    from lagwise_dashboard.report.capacity_report import CapacityReport

#: Maximum width in columns: longer lines are hard to read.
_WIDTH = 110
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.argument("group", required=False)
@click.option("--topic", help="The topic, where the group reads several topics.")
@cluster_option
@click.option(
    "--t1", "t1_seconds", type=duration_type(), help="Time per message spent waiting, as for I/O or a downstream."
)
@click.option("--t2", "t2_seconds", type=duration_type(), help="Time per message on the CPU.")
@click.option(
    "--per-message",
    "seconds_per_message",
    type=duration_type(),
    help="Total time per message, where T1 and T2 are unknown: sizes members with one thread each.",
)
@click.option(
    "--unit",
    type=click.Choice([Unit.MEMBER.value, Unit.SUBTASK.value]),
    default=Unit.MEMBER.value,
    help="What handles a message in --per-message: a member, or a subtask of the busiest vertex of a Flink job.",
)
@click.option("--cores", type=float, help="Cores of one node, or its CPU limit.")
@click.option("--peak", "peak_rate_per_second", type=number, help="Messages per second at peak.")
@click.option(
    "--objective-rate",
    "objective_rate_per_second",
    type=number,
    help="Messages per second that keep the lag objective: sizes by them and not by the peak. Known of a GROUP with "
    "two days of minutes.",
)
@click.option(
    "--objective",
    "objective_seconds",
    type=duration_type(),
    help="How old the oldest unread message may become when a GROUP is sized, such as 5m. Default: "
    "`lag_objective_seconds` of the group.",
)
@click.option(
    "--by",
    "size_by",
    type=click.Choice([by.value for by in SizeBy]),
    default=SizeBy.OBJECTIVE.value,
    show_default=False,
    help="Whether to size by the lag objective or by the peak. Default: objective; for a GROUP "
    "`analysis.capacity.size_by`.",
)
@click.option(
    "--horizon",
    "horizon_seconds",
    type=duration_type(),
    help="How far ahead the forecast counts when a GROUP is sized, such as 30d. Default: "
    "`analysis.forecast.horizon_days`.",
)
@click.option("--partitions", type=int, help="Partitions (queues) of the topic.")
@click.option(
    "--hottest-share",
    type=share,
    show_default="even",
    help="Share of the traffic in the hottest partition, such as 0.1 or 10%.",
)
@click.option(
    "--utilisation",
    "target_utilisation",
    type=share,
    default=defaults.DEFAULT_TARGET_UTILISATION,
    show_default=False,
    help="Share of the capacity that the demand may use. Default: 0.7; for a GROUP "
    "`analysis.capacity.target_utilisation`.",
)
@click.option(
    "--catch-up",
    "catch_up_seconds",
    type=duration_type(),
    default="30m",
    help="Time to work off the backlog of a restart and --lag.",
)
@click.option(
    "--restart", "restart_seconds", type=duration_type(), default="60s", help="Time without reading during a restart."
)
@click.option(
    "--outage",
    "outage_seconds",
    type=duration_type(),
    default="0",
    help="Length of an outage at peak whose backlog has to be worked off as well, within --outage-catch-up.",
)
@click.option(
    "--outage-catch-up",
    "outage_catch_up_seconds",
    type=duration_type(),
    default="4h",
    help="Time to work off the backlog of the --outage.",
)
@click.option("--lag", type=number, default="0", help="Messages already waiting.")
@click.option("--spare-nodes", type=int, default=1, help="Nodes that may fail at the same time.")
@click.option(
    "--concurrency",
    type=click.Choice([c.value for c in Concurrency]),
    default=Concurrency.CONSUMER_PER_THREAD.value,
    help="Whether every thread is a consumer, or one consumer per node feeds a pool of threads.",
)
@click.option(
    "--ordering",
    type=click.Choice([o.value for o in Ordering]),
    show_default="partition with a consumer per thread, none with a pool",
    help="Which messages must be handled in order.",
)
@click.option(
    "--ceiling-share",
    "share_of_ceiling",
    type=share,
    default=defaults.DEFAULT_SHARE_OF_CEILING,
    help="A node gets threads until it reaches this share of cores / T2.",
)
@click.option(
    "--max-threads",
    "max_threads_per_node",
    type=int,
    default=defaults.DEFAULT_MAX_THREADS_PER_NODE,
    help="Maximum number of threads per node.",
)
@click.option("--html", "html_file", type=_FILE, help="Write the advice to this file, as a report of one page.")
@click.option("--csv", "csv_file", type=_FILE, help="Write every figure to this file.")
@data_option
@json_option("the advice and the derivation of every figure")
@click.pass_context
def size(
    context: click.Context,
    /,
    group: str | None,
    topic: str | None,
    cluster: str | None,
    data: str | None,
    as_json: bool,
    horizon_seconds: float | None,
    html_file: Path | None,
    csv_file: Path | None,
    **values: Any,
) -> None:
    """Advise threads, nodes and partitions, for a watched GROUP or for any workload.

    For a GROUP, Lagwise knows the demand, its members' throughput and probe measurements. Options override
    these. Where the inputs are not enough, it says what is missing. Without a GROUP, --t1, --t2, --cores, --peak and
    --partitions are required.

    \b
      lagwise size billing
      lagwise size billing --topic orders --horizon 30d
      lagwise size billing --topic orders --objective 10m
      lagwise size billing --topic orders --by peak
      lagwise size billing --topic orders --peak 20k --json
      lagwise size billing --html meeting.html --csv meeting.csv

    T1 is the time per message spent waiting for something outside, T2 the time on the CPU. The probe measures both in
    the consumer (lagwise.probe; docs/probe.md for other languages). Without it, time the handler on an idle node: T2 is
    its CPU time, T1 its wall time minus T2 (waiting for a core belongs to neither).

    Handlers that wait 12 ms and compute 3 ms, on nodes of 8 cores, 20,000 messages/s, 480 partitions:

    \b
      lagwise size --t1 12ms --t2 3ms --cores 8 --peak 20k --partitions 480

    The hottest partition carries 10 %, and the order within a partition does not matter:

    \b
      lagwise size --t1 12ms --t2 3ms --cores 8 --peak 2000 --partitions 48 --hottest-share 10% --concurrency pool

    Exits with 0 whenever there is an answer, also if no number of nodes is enough, or too little is known of the GROUP.
    """
    from lagwise_app.size.answer import as_document
    from lagwise_app.size.bad_question import BadQuestion
    from lagwise_app.size.group_capacity import load_measured_group
    from lagwise_app.size.question import REPORTED_INPUTS, SizingQuestion, answer

    now, target = datetime.now(UTC), values["target_utilisation"]
    typed = {name for name in OPTIONS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    called = OPTIONS | {"group": "GROUP", "horizon_seconds": "--horizon"}
    question = SizingQuestion(values, typed, called)
    sources = {name: f"option {option}" if name in typed else "default" for name, option in OPTIONS.items()}
    known: MeasuredGroup | None = None
    try:
        question.check()
        if group is None:
            question.check_alone(horizon_seconds)
        else:
            config = context.obj.load(data=data)
            target = config.analysis.capacity.target_utilisation
            lake = open_lake(config)
            known = load_measured_group(
                lake,
                _capacity_row(lake, group, cluster, topic),
                horizon_seconds=horizon_seconds,
                objective_seconds=values["objective_seconds"],
                size_by=question.size_by(config.analysis.capacity.size_by),
                target_utilisation=target,
                now=now,
            )
        sizing = answer(question, known, sources, target_utilisation=target, now=now)
    except BadQuestion as error:
        if error.called is None:
            raise click.UsageError(str(error)) from None
        raise click.BadParameter(str(error), ctx=context, param_hint=error.called) from None
    _write_files(sizing.report, html_file, csv_file)
    if as_json:
        print_json(as_document(sizing.report, sizing.values, sizing.load_test))
        return
    from lagwise_app.size.terminal_report import size_page
    from lagwise_app.terminal import output

    console = output.console()
    inputs = {OPTIONS[name]: (sizing.values[name], sizing.sources[name]) for name in REPORTED_INPUTS}
    console.print(size_page(sizing.report, inputs), width=min(console.width, _WIDTH))


_INPUTS = {"seconds_per_message", *(field.name for field in fields(Workload))}
#: The option of each input, for reports and errors.
OPTIONS = {param.name: param.opts[0] for param in size.params if param.name in _INPUTS}


def _capacity_row(lake: "Lake", group: str, cluster: str | None, topic: str | None) -> dict[str, Any]:
    """The row of `capacity` of a group. Raises LagwiseError where there is no row, no lake, or more than one row."""
    from lagwise.tables.capacity import CAPACITY

    rows = [
        row
        for row in lake.read(CAPACITY).to_pylist()
        if row["group"] == group and cluster in (None, row["cluster"]) and topic in (None, row["topic"])
    ]
    if not rows and lake.open(CAPACITY) is None:
        raise LagwiseError(
            f"no capacity in the lake at {lake.uri}: `{program()} up` fills a lake; choose another with --data or "
            "`data` in the settings. Without GROUP, give all numbers as options",
            code=ErrorCode.NO_RESULTS,
        )
    if not rows:
        about = f"group {clean(group)!r}" + (f" on topic {clean(topic)!r}" if topic else "")
        raise LagwiseError(
            f"the capacity of {about} is not known yet; `{program()} status` lists the groups, and the analysis "
            "works it out a few minutes after it first sees a group. Without GROUP, give all numbers as options",
            code=ErrorCode.NO_RESULTS,
        )
    if len({row["cluster"] for row in rows}) > 1:
        names = ", ".join(sorted({row["cluster"] for row in rows}))
        raise LagwiseError(
            f"group {clean(group)!r} is in several clusters ({clean(names)}): choose one with --cluster",
            code=ErrorCode.AMBIGUOUS_NAME,
        )
    if len(rows) > 1:
        names = ", ".join(sorted(row["topic"] for row in rows))
        raise LagwiseError(
            f"group {clean(group)!r} reads {clean(names)}: choose one with --topic", code=ErrorCode.AMBIGUOUS_NAME
        )
    return dict(rows[0])


def _write_files(report: "CapacityReport", html_file: Path | None, csv_file: Path | None) -> None:
    """Write the requested files, and report each on stderr.

    Raises OSError, and ModuleNotFoundError where the package for the charts is missing.
    """
    if csv_file is not None:
        from lagwise_dashboard.report.csv_file import as_csv

        csv_file.write_text(as_csv(report), encoding="utf-8", newline="")
        click.echo(f"wrote {csv_file}", err=True)
    if html_file is not None:
        from lagwise_dashboard.report.html_file import as_html

        html_file.write_text(as_html(report), encoding="utf-8")
        click.echo(f"wrote {html_file}", err=True)

"""``lagwise size``: how many threads, nodes and partitions a workload needs."""

from collections.abc import Mapping, Set
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lagwise.domain.capacity.objective_demand import OTHER_PEAK
from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.group_workload import NEEDED, missing_of, workload_from
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit, Workload
from lagwise_app.cli.option_types import duration_type, number, share
from lagwise_app.cli.shared import cluster_option, data_option, json_option, open_lake
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise_app.size.group_capacity import MeasuredGroup

#: The inputs whose source is shown for a group.
_REPORTED_INPUTS = (
    "seconds_per_message", *NEEDED, "objective_rate_per_second", "objective_seconds", "hottest_share", "lag",
)  # fmt: skip
_NODE_INPUTS = frozenset({"t1_seconds", "t2_seconds", "cores"})
_TIMES = frozenset({"t1_seconds", "seconds_per_message"})

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
    from lagwise_app.size.answer import as_document, sizing_report, write_files

    now, target = datetime.now(UTC), values["target_utilisation"]
    typed = {name for name in OPTIONS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if "seconds_per_message" in typed and typed & _NODE_INPUTS:
        raise click.UsageError("--per-message replaces --t1, --t2 and --cores: give either")
    if "unit" in typed and typed & _NODE_INPUTS:
        raise click.UsageError("--unit goes with --per-message; --t1, --t2 and --cores size nodes")
    known: MeasuredGroup | None = None
    sources = {name: f"option {option}" if name in typed else "default" for name, option in OPTIONS.items()}
    if group is not None:
        from lagwise_app.size.group_capacity import load_measured_group

        config = context.obj.load(data=data)
        target = config.analysis.capacity.target_utilisation
        known = load_measured_group(
            open_lake(config),
            group,
            cluster=cluster,
            topic=topic,
            horizon_seconds=horizon_seconds,
            objective_seconds=values["objective_seconds"],
            size_by=SizeBy(values["size_by"] if "size_by" in typed else config.analysis.capacity.size_by),
            target_utilisation=target,
            now=now,
        )
        values, sources = _with_group_values(known, values, sources, typed)
        if "peak_rate_per_second" in typed and "objective_rate_per_second" not in typed:
            values["objective_rate_per_second"] = None
            sources["objective_rate_per_second"] = OTHER_PEAK
        if typed & _TIMES:
            known = replace(known, downstream=None)  # other times per message mean another downstream
    elif horizon_seconds is not None:
        raise click.UsageError("--horizon needs a GROUP, whose topic has a forecast: name one, or give --peak")
    elif values["objective_seconds"] is not None and values["objective_rate_per_second"] is None:
        raise click.UsageError("--objective needs a GROUP, whose minutes are recorded: name one, or --objective-rate")
    elif needed := [OPTIONS[name] for name in missing_of(values)]:
        them = "it" if len(needed) == 1 else "them"
        raise click.UsageError(f"missing {', '.join(needed)}: give {them}, or name a watched GROUP")
    elif "size_by" in typed and values["size_by"] == SizeBy.OBJECTIVE and values["objective_rate_per_second"] is None:
        raise click.UsageError("--by objective needs a GROUP with recorded minutes: name one, or --objective-rate")
    elif (values["objective_rate_per_second"] or 0.0) > values["peak_rate_per_second"] >= 0.0:
        raise click.UsageError("--objective-rate must be --peak at most: no objective takes more than the peak")
    if "spare_nodes" in typed and values["unit"] == Unit.SUBTASK:
        raise click.UsageError("a Flink job has no spare subtasks: leave --spare-nodes out, and keep slots free")
    values |= {"concurrency": Concurrency(values["concurrency"]), "unit": Unit(values["unit"])}
    values["size_by"] = SizeBy(values["size_by"])
    values["ordering"] = Ordering(values["ordering"]) if values["ordering"] else None
    missing = missing_of(values)
    try:
        workload = None if missing else workload_from(values)
        report = sizing_report(workload, known, missing=missing, sources=sources, target_utilisation=target, now=now)
    except OutOfRange as error:
        option, allowed = OPTIONS.get(error.argument), _range_in_options(error)
        if values["seconds_per_message"] is not None and error.argument in _NODE_INPUTS:
            # The time per message counts as T1, with a T2 of 0.
            option, allowed = OPTIONS["seconds_per_message"], "must be above 0, and a day at most."
        raise click.BadParameter(allowed, ctx=context, param_hint=option) from None
    write_files(report, html_file, csv_file)
    if as_json:
        print_json(as_document(report, values, known.load_test if known else None))
        return
    from lagwise_app.size.terminal_report import size_page
    from lagwise_app.terminal import output

    console = output.console()
    inputs = {OPTIONS[name]: (values[name], sources[name]) for name in _REPORTED_INPUTS}
    console.print(size_page(report, inputs), width=min(console.width, _WIDTH))


_INPUTS = {"seconds_per_message", *(field.name for field in fields(Workload))}
#: The option of each input, for reports and errors.
OPTIONS = {param.name: param.opts[0] for param in size.params if param.name in _INPUTS}


def _with_group_values(
    known: "MeasuredGroup", values: Mapping[str, Any], sources: Mapping[str, str], typed: Set[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The inputs and their sources. What is known of the group replaces defaults, but not typed options."""
    # Some options size nodes with threads; --per-message sizes members.
    other: Set[str] = _NODE_INPUTS if "seconds_per_message" in typed else frozenset()
    if typed & _NODE_INPUTS:
        other = {"seconds_per_message", "unit"}
    taken = known.inputs.keys() - typed - other
    values = {**values, **{name: known.inputs[name] for name in taken}}
    sources = {**sources, **{name: known.sources[name] for name in taken & known.sources.keys()}}
    unknown = [name for name in _REPORTED_INPUTS if values[name] is None and name != "hottest_share"]
    return values, sources | {name: known.sources.get(name, "not known") for name in unknown}


def _range_in_options(error: OutOfRange) -> str:
    """The allowed range in terms of the command line: options instead of arguments, no unit."""
    allowed = error.allowed.replace(" (in seconds)", "")
    for argument in ("t1_seconds", "t2_seconds"):
        allowed = allowed.replace(argument, OPTIONS[argument])
    return f"must be {allowed}."

"""``lagwise size``: how many threads, nodes and partitions a workload needs."""

from datetime import UTC, datetime
from typing import Any

import click
from click.core import ParameterSource

from lagwise.cli.group import data_option, json_option, open_lake, print_json
from lagwise.cli.numbers import Amount, Duration, Share
from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Concurrency, Ordering, Workload

#: The option that sets each field of a Workload; the reports and the errors name it.
OPTIONS = {
    "t1_seconds": "--t1",
    "t2_seconds": "--t2",
    "cores": "--cores",
    "peak_rate_per_second": "--peak",
    "partitions": "--partitions",
    "hottest_share": "--hottest-share",
    "lag": "--lag",
    "target_utilisation": "--utilisation",
    "catch_up_seconds": "--catch-up",
    "restart_seconds": "--restart",
    "outage_seconds": "--outage",
    "outage_catch_up_seconds": "--outage-catch-up",
    "spare_nodes": "--spare-nodes",
    "share_of_ceiling": "--ceiling-share",
    "max_threads_per_node": "--max-threads",
    "concurrency": "--concurrency",
    "ordering": "--ordering",
}


#: Without these there is no workload.
_NEEDED = ("t1_seconds", "t2_seconds", "cores", "peak_rate_per_second", "partitions")
#: Of these it is told where they come from, of a group.
_TOLD = (*_NEEDED, "hottest_share", "lag")

#: Wider than this, sentences are hard to read.
_WIDTH = 110


@click.command(context_settings={"show_default": True})
@click.argument("group", required=False)
@click.option("--topic", help="The topic, where the group reads several.")
@click.option("--cluster", help="The group's cluster, where several clusters have a group of this name.")
@click.option("--t1", "t1_seconds", type=Duration(), help="Time per message spent waiting (I/O, a downstream).")
@click.option("--t2", "t2_seconds", type=Duration(), help="Time per message on the CPU.")
@click.option("--cores", type=float, help="Cores of one node, or its CPU limit.")
@click.option("--peak", "peak_rate_per_second", type=Amount(), help="Messages per second at peak.")
@click.option(
    "--horizon",
    "horizon_seconds",
    type=Duration(),
    show_default="as far as is planned: analysis.forecast.horizon_days",
    help="Size a GROUP for what is forecast up to then, such as 30d.",
)
@click.option("--partitions", type=int, help="Partitions (queues) of the topic.")
@click.option(
    "--hottest-share",
    type=Share(),
    show_default="even",
    help="Share of the traffic in the hottest partition, such as 0.1 or 10%.",
)
@click.option(
    "--utilisation",
    "target_utilisation",
    type=Share(),
    default=defaults.DEFAULT_TARGET_UTILISATION,
    show_default="0.7; of a GROUP: analysis.capacity.target_utilisation",
    help="How much of the capacity the demand may use.",
)
@click.option(
    "--catch-up",
    "catch_up_seconds",
    type=Duration(),
    default="30m",
    help="Time in which the backlog of a restart, and --lag, must be gone.",
)
@click.option(
    "--restart", "restart_seconds", type=Duration(), default="60s", help="How long nothing is read during a restart."
)
@click.option(
    "--outage",
    "outage_seconds",
    type=Duration(),
    default="0",
    help="Length of an outage at peak that must be caught up with as well.",
)
@click.option(
    "--outage-catch-up",
    "outage_catch_up_seconds",
    type=Duration(),
    default="4h",
    help="Time in which the backlog of the outage must be gone.",
)
@click.option("--lag", type=Amount(), default="0", help="Messages that already wait.")
@click.option("--spare-nodes", type=int, default=1, help="Nodes that may fail at once.")
@click.option(
    "--concurrency",
    type=click.Choice([c.value for c in Concurrency]),
    default=Concurrency.CONSUMER_PER_THREAD.value,
    help="Is every thread a consumer of its own, or does one consumer a node feed a pool of threads?",
)
@click.option(
    "--ordering",
    type=click.Choice([o.value for o in Ordering]),
    show_default="partition with a consumer per thread, none with a pool",
    help="Which messages must be handled one after the other.",
)
@click.option(
    "--ceiling-share",
    "share_of_ceiling",
    type=Share(),
    default=defaults.DEFAULT_SHARE_OF_CEILING,
    help="A node gets threads until it does this share of cores / T2.",
)
@click.option(
    "--max-threads",
    "max_threads_per_node",
    type=int,
    default=defaults.DEFAULT_MAX_THREADS_PER_NODE,
    help="No node gets more threads than this.",
)
@data_option
@json_option("the advice, every figure with what it was made of,")
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
    **values: Any,
) -> None:
    """Advise threads, nodes and partitions, for a GROUP that is watched or for any workload.

    Of a GROUP the demand, what its members do and what a probe measured are known: nothing has to be typed in, and
    what is typed in counts instead. Without one, --t1, --t2, --cores, --peak and --partitions are needed.

    \b
      lagwise size billing
      lagwise size billing --topic orders --horizon 30d
      lagwise size billing --topic orders --peak 20k --json

    T1 is the time per message spent waiting for something outside, T2 the time on the CPU. The probe measures both in
    the consumer (lagwise.probe; docs/probe.md has it for other languages). Without it, time the handler on a node that
    is not busy: T2 is its CPU time, T1 its wall time less T2 (waiting for a core belongs to neither).

    Handlers that wait 12 ms and compute 3 ms, on nodes of 8 cores, 20,000 messages/s, 480 partitions:

    \b
      lagwise size --t1 12ms --t2 3ms --cores 8 --peak 20k --partitions 480

    The hottest partition carries a tenth, and order within a partition does not matter:

    \b
      lagwise size --t1 12ms --t2 3ms --cores 8 --peak 2000 --partitions 48 --hottest-share 10% --concurrency pool

    Exits 0 whenever there is advice, also where it is that no number of nodes is enough.
    """
    from lagwise.domain.sizing.advice import advise

    row, sources, ahead = None, _sources(context), None
    if group is not None:
        from lagwise.cli.size_group import row_of
        from lagwise.cli.size_horizon import ahead_within

        config, now = context.obj.load(data=data), datetime.now(UTC)
        lake = open_lake(config)
        row = row_of(lake, group, cluster, topic)
        if horizon_seconds is not None:
            ahead = ahead_within(lake, row, horizon_seconds, now)
        known, told = _known_of(row, ahead, config.analysis.capacity.target_utilisation, now)
        values, sources = _without_typing(context, row, (values, sources), (known, told))
    elif horizon_seconds is not None:
        raise click.UsageError("--horizon is about the forecast of a GROUP's topic: name one, or type in --peak")
    elif needed := [OPTIONS[name] for name in _NEEDED if values[name] is None]:
        raise click.UsageError(f"missing {', '.join(needed)}: type them in, or name a GROUP that is watched")
    ordering = values.pop("ordering")
    try:
        workload = Workload(
            **values | {"concurrency": Concurrency(values["concurrency"])},
            ordering=Ordering(ordering) if ordering else None,
        )
    except OutOfRange as error:
        raise click.BadParameter(_in_options(error), ctx=context, param_hint=OPTIONS.get(error.argument)) from None
    advice = advise(workload)
    if row is not None and ahead is not None:
        from lagwise.cli.size_horizon import judged_within

        row = judged_within(row, ahead, advice, workload.target_utilisation)
    if as_json:
        judged = {} if row is None else {"group": row}
        print_json(judged | advice.as_document(sources))
        return
    from lagwise import screen
    from lagwise.cli.size_report import judgement, report

    console = screen.console()
    width = min(console.width, _WIDTH)
    if row is not None:
        console.print(judgement(row, {OPTIONS[name]: (values[name], sources[name]) for name in _TOLD}), width=width)
    console.print(report(advice), width=width)


def _known_of(
    row: dict[str, Any], ahead: tuple[DemandAhead, ...] | None, target_utilisation: float, now: datetime
) -> tuple[dict[str, Any], dict[str, str]]:
    """Values that nobody has to type in, and where each comes from. ``ahead`` is what is forecast up to the horizon,
    where one is asked for."""
    from lagwise.cli.size_horizon import highest
    from lagwise.domain.sizing.known_workload import known_values

    known, told = known_values(row, now)
    known["target_utilisation"], told["target_utilisation"] = target_utilisation, "settings"
    if ahead is not None:
        known["peak_rate_per_second"], told["peak_rate_per_second"] = highest(row, ahead)
    return known, told


def _without_typing(
    context: click.Context,
    row: dict[str, Any],
    given: tuple[dict[str, Any], dict[str, str]],
    known: tuple[dict[str, Any], dict[str, str]],
) -> tuple[dict[str, Any], dict[str, str]]:
    """What is given with what is known in the place of what was not typed in, values and sources. UsageError where
    that is not enough."""
    from lagwise.cli.size_group import not_known

    typed = {name for name in OPTIONS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    values = given[0] | {name: value for name, value in known[0].items() if name not in typed}
    sources = given[1] | {name: source for name, source in known[1].items() if name not in typed}
    if still := [OPTIONS[name] for name in _NEEDED if values.get(name) is None]:
        raise not_known(row, still)
    return values, sources


def _in_options(error: OutOfRange) -> str:
    """The range in the words of the command line: options instead of arguments, units are typed with the value."""
    allowed = error.allowed.replace(" (in seconds)", "")
    for argument in ("t1_seconds", "t2_seconds"):
        allowed = allowed.replace(argument, OPTIONS[argument])
    return f"must be {allowed}."


def _sources(context: click.Context) -> dict[str, str]:
    typed = ParameterSource.COMMANDLINE
    return {
        name: f"option {option}" if context.get_parameter_source(name) is typed else "default"
        for name, option in OPTIONS.items()
    }

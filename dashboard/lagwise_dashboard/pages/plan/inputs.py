"""The inputs of a plan. Every one is in the address, so that a question can be shared as a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from lagwise.domain.capacity.objective_demand import OTHER_PEAK
from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.group_workload import missing_of, workload_from
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit, Workload
from lagwise.links import parameters
from lagwise.links.parameter_types import Number, Parameter
from lagwise_dashboard import address, context
from lagwise_dashboard.report.advice_tables import ENTERED, INPUT_FORMATS, LABELS
from lagwise_dashboard.widgets.number_input import number_input
from lagwise_dashboard.widgets.sizing import objective_takes
from lagwise_dashboard.widgets.sizing.objective_takes import ObjectiveTakes
from lagwise_dashboard.widgets.sizing.starting_values import StartingValues


@dataclass(frozen=True, slots=True)
class Field:
    """One number to enter, in the unit shown; ``step`` is how far a click on its buttons goes. The parameter's default
    is None where the value may be known, or must be entered."""

    parameter: Number
    step: float
    help: str


#: The numbers by the name of the Workload's field.
FIELDS = {
    "seconds_per_message": Field(
        parameters.MESSAGE_MS,
        1.0,
        "Total time per message, waiting and computing: all that is known about a group without a probe.",
    ),
    "t1_seconds": Field(
        parameters.T1_MS,
        1.0,
        "Time per message spent waiting for something outside: I/O, a database, a lock. Waiting for a core is not part "
        "of it.",
    ),
    "t2_seconds": Field(parameters.T2_MS, 1.0, "Time per message on the CPU."),
    "cores": Field(
        parameters.CORES, 1.0, "Hyper-threads are not whole cores. A container's CPU limit may be a fraction."
    ),
    "target_utilisation": Field(
        parameters.UTILISATION,
        5.0,
        "Share of the capacity that the demand may use. The rest covers bursts and estimation errors.",
    ),
    "spare_nodes": Field(parameters.SPARE_NODES, 1, "Nodes that may fail at once."),
    "catch_up_seconds": Field(
        parameters.CATCH_UP, 5.0, "Time within which the backlog of a restart, and the one entered below, must be gone."
    ),
    "restart_seconds": Field(
        parameters.RESTART,
        10.0,
        "How long reading stops: the 45 s until Kafka gives up on a crashed consumer, plus a rebalance.",
    ),
    "outage_seconds": Field(
        parameters.SIZED_OUTAGE, 10.0, "An outage at peak whose backlog must be worked off as well; 0 for none."
    ),
    "outage_catch_up_seconds": Field(
        parameters.OUTAGE_CATCH_UP, 30.0, "Time within which the backlog of that outage must be gone."
    ),
    "share_of_ceiling": Field(
        parameters.CEILING, 1.0, "A node gets threads until it does this share of the most that its cores can do."
    ),
    "lag": Field(parameters.BACKLOG, 1000.0, "Messages that are waiting already."),
    "max_threads_per_node": Field(parameters.MAX_THREADS, 1, "No node is given more threads than this."),
}


#: Numbers that may be left empty: an empty field takes the group's current value, or an example without a group. Only
#: what is typed goes into the address: a link to a group stays up to date, and a link to an assumption stays as it was.
_KNOWABLE = tuple(field.parameter for field in FIELDS.values() if field.parameter.default is None)
#: What a group fills: of another group it is another number.
OF_THE_GROUP: tuple[Parameter[Any], ...] = (
    parameters.PEAK,
    parameters.OBJECTIVE,
    parameters.PARTITIONS,
    parameters.HOTTEST,
    parameters.CONCURRENCY,
    *_KNOWABLE,
)
_SLACK = tuple(FIELDS)[4:]
_DEFAULT, _UNKNOWN = "default", "unknown"


@dataclass(frozen=True, slots=True)
class SizingInputs:
    """What the inputs ask: no ``workload`` where something is ``missing``. ``sources`` says where each is from."""

    workload: Workload | None
    sources: Mapping[str, str]
    missing: tuple[str, ...] = ()

    @property
    def assumes_times(self) -> bool:
        """Whether it was typed in how long a message takes: that asks about another downstream than the group's."""
        return any(self.sources.get(name) == ENTERED for name in ("t1_seconds", "seconds_per_message"))


class _InputFields:
    """The fields as they are drawn one after the other; what they hold, and where that is from."""

    def __init__(self, start: StartingValues) -> None:
        self.start = start
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}

    def keep(self, name: str, typed: Any, *, default: Any = None) -> None:
        """What was typed, else what is known, else the default; nothing where there is none of them."""
        known = self.start.values.get(name)
        if typed is not None:
            self.values[name], self.sources[name] = typed, ENTERED
        elif known is not None:
            self.values[name], self.sources[name] = known, self.start.sources.get(name, _DEFAULT)
        else:
            self.values[name], self.sources[name] = default, _DEFAULT

    def placeholder(self, name: str, text: str, *, default: str = "unknown: enter it") -> str:
        """The grey text of an empty field."""
        if self.start.values.get(name) is None:
            return default
        source_phrase = "from the settings" if self.start.sources.get(name) == "settings" else self.start.source_phrase
        return f"{text}, {source_phrase}"

    def number(self, name: str) -> None:
        field, shown = FIELDS[name], INPUT_FORMATS[name]
        parameter = field.parameter
        known = self.start.values.get(name)
        default = defaults.DEFAULT_MAX_THREADS_PER_NODE if name == "max_threads_per_node" else None
        typed = number_input(
            parameter,
            f"{shown.label} ({shown.unit})",
            step=field.step,
            placeholder=self.placeholder(
                name,
                "" if known is None else f"{float(f'{known / shown.scale:.4g}'):,.12g}",
                default=f"{default}, the default" if default else "unknown: enter it",
            ),
            help=field.help,
        )
        # 70 % is 0.7, not 0.7000000000000001
        value = None if typed is None else float(f"{typed * shown.scale:.12g}")
        self.keep(name, int(value) if value is not None and parameter.is_whole else value, default=default)
        if typed is not None and typed == parameter.default:
            self.sources[name] = _DEFAULT
        if self.values[name] is None:
            self.sources[name] = _UNKNOWN

    def load(self, name: str, parameter: Number, label: str, *, step: float, help: str) -> None:
        """A number of the load, in the unit of the Workload."""
        known = self.start.values.get(name) or 0
        placeholder = self.placeholder(name, f"{known:,.12g}")
        self.keep(name, number_input(parameter, label, step=step, placeholder=placeholder, help=help))

    def size_by(self) -> None:
        """By what to size; empty is what the settings say."""
        usual = context.config().analysis.capacity.size_by
        if self.start.is_example:
            self.values["size_by"], self.sources["size_by"] = SizeBy.PEAK, "without a group, the highest minute decides"
            st.caption(
                "Sized by the highest minute. What a lag objective takes is worked out from what was recorded: choose "
                "a group to size by it."
            )
            return
        st.selectbox(
            LABELS["size_by"],
            [by.value for by in SizeBy],
            index=None,
            placeholder=f"{usual}, from the settings",
            help="objective: the least capacity that keeps the lag objective, by the recorded minutes and the "
            "forecast. peak: the busiest minute. With less than two days of recorded minutes, the peak decides.",
            **address.bound(parameters.SIZE_BY),
        )
        chosen = address.get(parameters.SIZE_BY)
        self.values["size_by"], self.sources["size_by"] = SizeBy(chosen or usual), ENTERED if chosen else "settings"

    def objective(self, outlook: Outlook | None) -> None:
        """The lag objective and what it takes: of another objective from the kept ones of the topic, of another peak
        it is not known."""
        if self.start.is_example:
            return
        known = self.start.values.get("objective_seconds")
        typed = number_input(
            parameters.OBJECTIVE,
            f"{LABELS['objective_seconds']} (s)",
            step=60.0,
            placeholder=self.placeholder("objective_seconds", "" if known is None else f"{known:,.12g}"),
            help="How old the oldest unread message may become.",
        )
        self.keep("objective_seconds", typed)
        self.keep("objective_rate_per_second", None)
        if self.sources["peak_rate_per_second"] == ENTERED:
            takes = ObjectiveTakes(None, OTHER_PEAK)
        else:
            rate, source = self.values["objective_rate_per_second"], self.sources["objective_rate_per_second"]
            takes = objective_takes.of(ObjectiveTakes(rate, source), typed, outlook)
        self.values["objective_rate_per_second"], self.sources["objective_rate_per_second"] = takes
        is_typed = self.sources["peak_rate_per_second"] == ENTERED
        objective_takes.show(takes, self.values, with_forecast=bool(outlook and outlook.days and not is_typed))

    def hottest(self) -> None:
        """The share; None is even. The group's own is no longer true with another number of partitions."""
        share = self.start.values.get("hottest_share")
        if self.start.values.get("partitions") != self.values["partitions"]:
            share = None
        typed = number_input(
            parameters.HOTTEST,
            "Hottest partition (%)",
            step=1.0,
            placeholder="even" if share is None else self.placeholder("hottest_share", f"{100 * share:.4g}"),
            help="Share of the traffic in the hottest partition; 0 means even: the same for all partitions.",
        )
        if typed is not None:
            self.values["hottest_share"] = typed / 100.0 if typed > 0.0 else None
            self.sources["hottest_share"] = ENTERED
        else:
            self.values["hottest_share"] = share
            known = share is not None
            self.sources["hottest_share"] = self.start.sources["hottest_share"] if known else "taken as even"

    def concurrency(self) -> None:
        usual = self.start.values.get("concurrency", Concurrency.CONSUMER_PER_THREAD)
        st.selectbox(
            LABELS["concurrency"],
            [c.value for c in Concurrency],
            index=None,
            placeholder=self.placeholder("concurrency", str(usual), default=f"{usual}, the default"),
            help="A Kafka consumer belongs to one thread. consumer-per-thread: every thread has its own, and works "
            "only while it owns a partition. pool: one consumer per node passes its messages to many threads.",
            **address.bound(parameters.CONCURRENCY),
        )
        self.keep("concurrency", address.get(parameters.CONCURRENCY) or None, default=Concurrency.CONSUMER_PER_THREAD)
        self.values["concurrency"] = Concurrency(self.values["concurrency"])

    def ordering(self) -> None:
        st.selectbox(
            LABELS["ordering"],
            [o.value for o in Ordering],
            index=None,
            placeholder="what the threads keep anyway",
            help="global: one thread processes all messages in order. partition: the messages of a partition stay in "
            "order. none: any order. With consumer-per-thread each partition stays in order anyway, with pool none.",
            **address.bound(parameters.ORDERING),
        )
        chosen = address.get(parameters.ORDERING)
        self.keep("ordering", Ordering(chosen) if chosen else None)


def show(start: StartingValues, outlook: Outlook | None) -> SizingInputs:
    """Draw the inputs; what they ask. ``outlook`` is that of the group's topic, None without one. Raises OutOfRange
    where two of them do not fit together."""
    inputs = _InputFields(start)
    inputs.load(
        "peak_rate_per_second", parameters.PEAK, "Peak (messages/s)", step=100.0, help="Messages per second at peak."
    )
    inputs.size_by()
    inputs.objective(outlook)
    is_whole = "seconds_per_message" in start.values
    if is_whole:
        inputs.number("seconds_per_message")
        inputs.keep("unit", None)
        st.caption("T1 and T2 are not known separately. Enter all three values below to size nodes and threads.")
    left, right = st.columns(2)
    with left:
        inputs.load(
            "partitions",
            parameters.PARTITIONS,
            LABELS["partitions"],
            step=1,
            help="Partitions of the topic (queues, in RocketMQ).",
        )
        inputs.number("t1_seconds")
    with right:
        inputs.hottest()
        inputs.number("t2_seconds")
    inputs.number("cores")
    inputs.concurrency()
    inputs.ordering()
    # Entering one of these asks for nodes and threads instead of members.
    if is_whole and any(inputs.sources[name] == ENTERED for name in ("t1_seconds", "t2_seconds", "cores")):
        inputs.values.pop("seconds_per_message")
        is_whole = False
    slack = list(_SLACK)
    is_job = is_whole and inputs.values["unit"] is Unit.SUBTASK
    if is_job:
        slack.remove("spare_nodes")
    with st.expander("Slack and limits"):
        left, right = st.columns(2)
        for i, name in enumerate(slack):
            with (left, right)[i % 2]:
                inputs.number(name)
        if is_job:
            st.caption("A Flink job has no spare subtasks: keep task slots free.")
    if missing := missing_of(inputs.values):
        return SizingInputs(None, inputs.sources, missing)
    return SizingInputs(workload_from(inputs.values), inputs.sources)

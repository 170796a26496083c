"""The inputs of the capacity page. Every one is in the address, so that a question can be shared as a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.formulas import DEFAULT_OUTAGE_CATCH_UP_SECONDS
from lagwise.domain.sizing.known_workload import missing_of, workload_from
from lagwise.domain.sizing.ranges import MAX_CORES, MIN_CORES, OutOfRange
from lagwise.domain.sizing.workload import MAX_PARTITIONS, Concurrency, Ordering, Workload
from lagwise_dashboard.report.asked import LABELS, SHOWN

PEAK, PARTITIONS, HOTTEST = "capacity_peak", "capacity_partitions", "capacity_hottest"
_CONCURRENCY = "capacity_concurrency"
_WHOLE = ("spare_nodes", "max_threads_per_node")


@dataclass(frozen=True, slots=True)
class _Number:
    """One number to type in, in the unit shown. ``usual`` is None where it may be known, or is asked for."""

    key: str
    usual: float | None
    low: float
    high: float
    help: str
    step: float | None = None


#: The rest, by the name of the Workload's field. ``usual`` is what stands there where nothing is typed; None: nothing.
_NUMBERS = {
    "seconds_per_message": _Number(
        "capacity_message_ms",
        None,
        0.000001,
        8.64e7,
        "Time per message as a whole, waiting and computing, which is all that is known of a group without a probe.",
        step=1.0,
    ),
    "t1_seconds": _Number(
        "capacity_t1_ms",
        None,
        0.0,
        8.64e7,
        "Time per message spent waiting for something outside: I/O, a database, a lock. Waiting for a core is not part "
        "of it.",
        step=1.0,
    ),
    "t2_seconds": _Number("capacity_t2_ms", None, 0.0, 8.64e7, "Time per message on the CPU.", step=1.0),
    "cores": _Number(
        "capacity_cores",
        None,
        MIN_CORES,
        MAX_CORES,
        "Hyper-threads are not whole cores. A container's CPU limit may be a fraction.",
        step=1.0,
    ),
    "target_utilisation": _Number(
        "capacity_utilisation",
        None,
        1.0,
        100.0,
        "How much of the capacity the demand may use. The rest is for bursts and for being wrong.",
        step=5.0,
    ),
    "spare_nodes": _Number("capacity_spare", 1.0, 0.0, 100.0, "Nodes that may fail at once.", step=1.0),
    "catch_up_seconds": _Number(
        "capacity_catch_up_min",
        defaults.DEFAULT_CATCH_UP_SECONDS / 60.0,
        1.0,
        43_200.0,
        "Time in which the backlog of a restart, and the one below, must be gone.",
        step=5.0,
    ),
    "restart_seconds": _Number(
        "capacity_restart_s",
        defaults.DEFAULT_RESTART_SECONDS,
        0.0,
        86_400.0,
        "How long nothing is read: the 45 s after which Kafka gives up a crashed consumer, and a rebalance.",
        step=10.0,
    ),
    "outage_seconds": _Number(
        "capacity_sized_outage_min",
        0.0,
        0.0,
        43_200.0,
        "An outage, at peak, that must be caught up with as well; 0 asks for none.",
        step=10.0,
    ),
    "outage_catch_up_seconds": _Number(
        "capacity_outage_catch_up_min",
        DEFAULT_OUTAGE_CATCH_UP_SECONDS / 60.0,
        1.0,
        43_200.0,
        "Time in which the backlog of that outage must be gone.",
        step=30.0,
    ),
    "share_of_ceiling": _Number(
        "capacity_ceiling",
        100.0 * defaults.DEFAULT_SHARE_OF_CEILING,
        1.0,
        99.9,
        "A node is given threads until it does this share of what its cores can do at most.",
        step=1.0,
    ),
    "lag": _Number("capacity_lag", 0.0, 0.0, 1e15, "Messages that already wait.", step=1_000.0),
    "max_threads_per_node": _Number(
        "capacity_max_threads", None, 1.0, 10_000.0, "No node is given more threads than this.", step=1.0
    ),
}


#: Left empty, these and the load are what is known of the chosen group, as it is at any time, or an example without a
#: group; only what is typed goes into the address, so a link to a group stays up to date, and a link to an assumption
#: stays what it was.
_KNOWABLE = tuple(name for name, number in _NUMBERS.items() if number.usual is None)
_SLACK = tuple(_NUMBERS)[4:]
#: What is calculated with without a group, and only then.
_EXAMPLE: dict[str, Any] = {
    "t1_seconds": 0.012,
    "t2_seconds": 0.003,
    "cores": 4.0,
    "peak_rate_per_second": 1_000.0,
    "partitions": 24,
}
_TYPED, _DEFAULT = "typed in", "default"


@dataclass(frozen=True, slots=True)
class Start:
    """What stands in the fields before anything is typed: values of a Workload by name, and where each is from."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    #: Behind a value in an empty field.
    said: str

    @classmethod
    def example(cls, target_utilisation: float) -> "Start":
        """Without a group."""
        sources = dict.fromkeys(_EXAMPLE, "an example") | {"target_utilisation": "settings"}
        return cls(_EXAMPLE | {"target_utilisation": target_utilisation}, sources, "as an example")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the inputs ask: no ``workload`` where something is ``missing``. ``sources`` says where each is from."""

    workload: Workload | None
    sources: Mapping[str, str]
    missing: tuple[str, ...] = ()


def forget_known() -> None:
    """Empty the fields that a group fills."""
    for key in (PEAK, PARTITIONS, HOTTEST, _CONCURRENCY, *(_NUMBERS[name].key for name in _KNOWABLE)):
        st.session_state[key] = None


def complaint(error: OutOfRange) -> str:
    """What is wrong, in the page's words."""
    allowed = error.allowed.replace("t1_seconds", "T1").replace(" (in seconds)", "")
    return f"{LABELS.get(error.argument, error.argument)} must be {allowed}."


class _Inputs:
    """The fields as they are drawn one after the other; what they hold, and where that is from."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}

    def keep(self, name: str, typed: Any, *, default: Any = None) -> None:
        """What was typed, else what is known, else the default; nothing where there is none of them."""
        known = self.start.values.get(name)
        if typed is not None:
            self.values[name], self.sources[name] = typed, _TYPED
        elif known is not None:
            self.values[name], self.sources[name] = known, self.start.sources.get(name, _DEFAULT)
        else:
            self.values[name], self.sources[name] = default, _DEFAULT

    def placeholder(self, name: str, text: str, *, default: str = "not known: type it in") -> str:
        """What stands grey in an empty field."""
        if self.start.values.get(name) is None:
            return default
        said = "from the settings" if self.start.sources.get(name) == "settings" else self.start.said
        return f"{text}, {said}"

    def number(self, name: str) -> None:
        of, shown = _NUMBERS[name], SHOWN[name]
        known = self.start.values.get(name)
        default = defaults.DEFAULT_MAX_THREADS_PER_NODE if name == "max_threads_per_node" else None
        typed = st.number_input(
            f"{shown.label} ({shown.unit})",
            min_value=of.low,
            max_value=of.high,
            value=of.usual,
            step=of.step,
            placeholder=self.placeholder(
                name,
                "" if known is None else f"{float(f'{known / shown.scale:.4g}'):.12g}",
                default=f"{default}, the default" if default else "not known: type it in",
            ),
            format="%g",
            key=of.key,
            bind="query-params",
            help=of.help,
        )
        # 70 % is 0.7, not 0.7000000000000001
        value = None if typed is None else float(f"{typed * shown.scale:.12g}")
        if value is not None and name in _WHOLE:
            value = int(value)
        self.keep(name, value, default=default)
        if of.usual is not None and typed == of.usual:
            self.sources[name] = _DEFAULT

    def peak(self) -> None:
        known = self.start.values.get("peak_rate_per_second")
        typed = st.number_input(
            "Peak (messages/s)",
            min_value=0.0,
            max_value=1e12,
            value=None,
            step=100.0,
            placeholder=self.placeholder("peak_rate_per_second", f"{known or 0.0:.12g}"),
            format="%g",
            key=PEAK,
            bind="query-params",
            help="Messages per second at peak.",
        )
        self.keep("peak_rate_per_second", typed)

    def partitions(self) -> None:
        typed = st.number_input(
            "Partitions",
            min_value=1,
            max_value=MAX_PARTITIONS,
            value=None,
            step=1,
            placeholder=self.placeholder("partitions", f"{self.start.values.get('partitions')}"),
            key=PARTITIONS,
            bind="query-params",
            help="Partitions of the topic (queues, in RocketMQ).",
        )
        self.keep("partitions", typed)

    def hottest(self) -> None:
        """The share; None is even. The group's own is no longer true with another number of partitions."""
        share = self.start.values.get("hottest_share")
        if self.start.values.get("partitions") != self.values["partitions"]:
            share = None
        typed = st.number_input(
            "Hottest partition (%)",
            min_value=0.0,
            max_value=100.0,
            value=None,
            step=1.0,
            placeholder="even" if share is None else self.placeholder("hottest_share", f"{100 * share:.4g}"),
            format="%g",
            key=HOTTEST,
            bind="query-params",
            help="Share of the traffic in the hottest partition; 0 takes it as even, the same for all partitions.",
        )
        if typed is not None:
            self.values["hottest_share"] = typed / 100.0 if typed > 0.0 else None
            self.sources["hottest_share"] = _TYPED
        else:
            self.values["hottest_share"] = share
            known = share is not None
            self.sources["hottest_share"] = self.start.sources["hottest_share"] if known else "taken as even"

    def concurrency(self) -> None:
        usual = self.start.values.get("concurrency", Concurrency.CONSUMER_PER_THREAD)
        chosen = st.selectbox(
            "A node's threads",
            [c.value for c in Concurrency],
            index=None,
            placeholder=self.placeholder("concurrency", str(usual), default=f"{usual}, the default"),
            key=_CONCURRENCY,
            bind="query-params",
            help="Kafka's consumer belongs to one thread. Either every thread has one of its own, and works only while "
            "it holds a partition (consumer-per-thread); or one consumer a node hands its messages to many threads "
            "(pool).",
        )
        self.keep("concurrency", chosen, default=Concurrency.CONSUMER_PER_THREAD)
        self.values["concurrency"] = Concurrency(self.values["concurrency"])

    def ordering(self) -> None:
        chosen = st.selectbox(
            "Order to keep",
            [o.value for o in Ordering],
            index=None,
            placeholder="what the threads keep by themselves",
            key="capacity_ordering",
            bind="query-params",
            help="global: all messages one after the other, by one thread; partition: those of a partition; none. "
            "A consumer per thread keeps each partition's order by itself, a pool keeps none.",
        )
        self.keep("ordering", Ordering(chosen) if chosen else None)


def show(start: Start) -> Asked:
    """Draw the inputs; what they ask. Raises OutOfRange where two of them do not fit together."""
    inputs = _Inputs(start)
    inputs.peak()
    is_whole = "seconds_per_message" in start.values
    if is_whole:
        inputs.number("seconds_per_message")
        st.caption("T1 and T2 are not known apart: with all three below typed in, nodes and threads are sized.")
    left, right = st.columns(2)
    with left:
        inputs.partitions()
        inputs.number("t1_seconds")
    with right:
        inputs.hottest()
        inputs.number("t2_seconds")
    inputs.number("cores")
    inputs.concurrency()
    inputs.ordering()
    with st.expander("Slack and limits"):
        left, right = st.columns(2)
        for i, name in enumerate(_SLACK):
            with (left, right)[i % 2]:
                inputs.number(name)
    # Somebody who types one of them means nodes and threads, and not members.
    if is_whole and any(inputs.sources[name] == _TYPED for name in ("t1_seconds", "t2_seconds", "cores")):
        inputs.values.pop("seconds_per_message")
    if missing := missing_of(inputs.values):
        return Asked(None, inputs.sources, missing)
    return Asked(workload_from(inputs.values), inputs.sources)

"""The inputs of the capacity page. Every one is in the address, so that a question can be shared as a link."""

from dataclasses import dataclass

import streamlit as st

from lagwise.domain import sizing_workload as defaults
from lagwise.domain.sizing_ranges import MAX_CORES, MIN_CORES, OutOfRange
from lagwise.domain.sizing_workload import MAX_PARTITIONS, Concurrency, Ordering, Workload
from lagwise_dashboard.queries.capacity import Load

#: The load. Left empty, these are the chosen group's, as it is at any time, or an example's; only what is typed goes
#: into the address, so a link to a group stays up to date, and a link to an assumption stays what it was.
PEAK, PARTITIONS, HOTTEST = "capacity_peak", "capacity_partitions", "capacity_hottest"
_EXAMPLE_PEAK, _EXAMPLE_PARTITIONS = 1_000.0, 24


@dataclass(frozen=True, slots=True)
class _Number:
    """One number to type in. ``scale`` turns the unit shown into the Workload's; ``usual`` is in the unit shown."""

    key: str
    label: str
    unit: str
    usual: float
    low: float
    high: float
    help: str
    scale: float = 1.0
    step: float | None = None


#: The rest, by the name of the Workload's field.
_NUMBERS = {
    "t1_seconds": _Number(
        "capacity_t1_ms",
        "T1, waiting",
        "ms",
        12.0,
        0.0,
        8.64e7,
        "Time per message spent waiting for something outside: I/O, a database, a lock. Waiting for a core is not part "
        "of it.",
        scale=1e-3,
        step=1.0,
    ),
    "t2_seconds": _Number(
        "capacity_t2_ms", "T2, on the CPU", "ms", 3.0, 0.0, 8.64e7, "Time per message on the CPU.", scale=1e-3, step=1.0
    ),
    "cores": _Number(
        "capacity_cores",
        "Cores of a node",
        "or its CPU limit",
        4.0,
        MIN_CORES,
        MAX_CORES,
        "Hyper-threads are not whole cores. A container's CPU limit may be a fraction.",
        step=1.0,
    ),
    "target_utilisation": _Number(
        "capacity_utilisation",
        "Target utilisation",
        "%",
        100.0 * defaults.DEFAULT_TARGET_UTILISATION,
        1.0,
        100.0,
        "How much of the capacity the demand may use. The rest is for bursts and for being wrong.",
        scale=0.01,
        step=5.0,
    ),
    "spare_nodes": _Number(
        "capacity_spare", "Spare nodes", "N+…", 1.0, 0.0, 100.0, "Nodes that may fail at once.", step=1.0
    ),
    "catch_up_seconds": _Number(
        "capacity_catch_up_min",
        "Catch up within",
        "min",
        defaults.DEFAULT_CATCH_UP_SECONDS / 60.0,
        1.0,
        43_200.0,
        "Time in which the backlog of a restart, and the one below, must be gone.",
        scale=60.0,
        step=5.0,
    ),
    "restart_seconds": _Number(
        "capacity_restart_s",
        "A restart takes",
        "s",
        defaults.DEFAULT_RESTART_SECONDS,
        0.0,
        86_400.0,
        "How long nothing is read: the 45 s after which Kafka gives up a crashed consumer, and a rebalance.",
        step=10.0,
    ),
    "lag": _Number("capacity_lag", "Backlog", "messages", 0.0, 0.0, 1e15, "Messages that already wait.", step=1_000.0),
    "max_threads_per_node": _Number(
        "capacity_max_threads",
        "Most threads a node",
        "threads",
        float(defaults.DEFAULT_MAX_THREADS_PER_NODE),
        1.0,
        10_000.0,
        "No node is given more threads than this.",
        step=1.0,
    ),
}


def forget_load() -> None:
    """Empty the fields that a group's load fills."""
    for key in (PEAK, PARTITIONS, HOTTEST):
        st.session_state[key] = None


def complaint(error: OutOfRange) -> str:
    """What is wrong, in the page's words."""
    names = {name: number.label for name, number in _NUMBERS.items()}
    names |= {"peak_rate_per_second": "Peak", "partitions": "Partitions", "hottest_share": "Hottest partition"}
    allowed = error.allowed.replace("t1_seconds", "T1").replace(" (in seconds)", "")
    return f"{names.get(error.argument, error.argument)} must be {allowed}."


def show(load: Load | None) -> Workload:
    """Draw the inputs; what they ask. Raises OutOfRange where two of them do not fit together."""
    numbers = {"peak_rate_per_second": _peak(load)}
    left, right = st.columns(2)
    with left:
        partitions = _partitions(load)
        numbers["t1_seconds"] = _number("t1_seconds")
    with right:
        hottest = _hottest(load, partitions)
        numbers["t2_seconds"] = _number("t2_seconds")
    numbers["cores"] = _number("cores")
    concurrency, ordering = _concurrency(), _ordering()
    with st.expander("Slack and limits"):
        left, right = st.columns(2)
        for i, name in enumerate(list(_NUMBERS)[3:]):
            with (left, right)[i % 2]:
                numbers[name] = _number(name)
    spare, threads = int(numbers.pop("spare_nodes")), int(numbers.pop("max_threads_per_node"))
    return Workload(
        **numbers,
        partitions=partitions,
        hottest_share=hottest,
        spare_nodes=spare,
        max_threads_per_node=threads,
        concurrency=concurrency,
        ordering=ordering,
    )


def _number(name: str) -> float:
    of = _NUMBERS[name]
    typed = st.number_input(
        f"{of.label} ({of.unit})",
        min_value=of.low,
        max_value=of.high,
        value=of.usual,
        step=of.step,
        format="%g",
        key=of.key,
        bind="query-params",
        help=of.help,
    )
    # 70 % is 0.7, not 0.7000000000000001
    return float(f"{typed * of.scale:.12g}")


def _peak(load: Load | None) -> float:
    known = None if load is None else load.peak_rate_per_second
    usual = _EXAMPLE_PEAK if known is None else _rounded_up(known)
    typed = st.number_input(
        "Peak (messages/s)",
        min_value=0.0,
        max_value=1e12,
        value=None,
        step=100.0,
        placeholder=f"{usual:.12g}, {_source(known)}",
        format="%g",
        key=PEAK,
        bind="query-params",
        help="Messages per second at peak.",
    )
    return usual if typed is None else typed


def _partitions(load: Load | None) -> int:
    known = load.partitions if load is not None and load.partitions else None
    usual = _EXAMPLE_PARTITIONS if known is None else min(known, MAX_PARTITIONS)
    typed = st.number_input(
        "Partitions",
        min_value=1,
        max_value=MAX_PARTITIONS,
        value=None,
        step=1,
        placeholder=f"{usual}, {_source(known)}",
        key=PARTITIONS,
        bind="query-params",
        help="Partitions of the topic (queues, in RocketMQ).",
    )
    return usual if typed is None else typed


def _hottest(load: Load | None, partitions: int) -> float | None:
    """The share; None is even. The group's own is no longer true with another number of partitions."""
    known = load.hottest_share if load is not None and load.partitions == partitions else None
    known = None if known is None or known < 1.01 / partitions else float(f"{known:.3g}")
    typed = st.number_input(
        "Hottest partition (%)",
        min_value=0.0,
        max_value=100.0,
        value=None,
        step=1.0,
        placeholder="even" if known is None else f"{100 * known:.4g}, {_source(known)}",
        format="%g",
        key=HOTTEST,
        bind="query-params",
        help="Share of the traffic in the hottest partition; 0 takes it as even, the same for all partitions.",
    )
    if typed is None:
        return known
    return typed / 100.0 if typed > 0.0 else None


def _source(known: float | None) -> str:
    return "as an example" if known is None else "from the group"


def _concurrency() -> Concurrency:
    chosen = st.segmented_control(
        "A node's threads",
        [c.value for c in Concurrency],
        default=Concurrency.CONSUMER_PER_THREAD.value,
        required=True,
        key="capacity_concurrency",
        bind="query-params",
        help="Kafka's consumer belongs to one thread. Either every thread has one of its own, and works only while "
        "it holds a partition (consumer-per-thread); or one consumer a node hands its messages to many threads (pool).",
    )
    return Concurrency(chosen or Concurrency.CONSUMER_PER_THREAD)


def _ordering() -> Ordering | None:
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
    return Ordering(chosen) if chosen else None


def _rounded_up(rate: float) -> float:
    """To three digits, which is more than a peak is known to, and up, so that it is still the highest."""
    if rate <= 0.0:
        return 0.0
    step = 10.0 ** (int(f"{rate:e}".partition("e")[2]) - 2)
    return round(-(-rate // step) * step, 12)

"""The inputs of the capacity page. Every one is in the address, so that a question can be shared as a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.formulas import DEFAULT_OUTAGE_CATCH_UP_SECONDS
from lagwise.domain.sizing.ranges import MAX_CORES, MIN_CORES, OutOfRange
from lagwise.domain.sizing.words import say_number
from lagwise.domain.sizing.workload import MAX_PARTITIONS, Concurrency, Ordering, Workload

#: What a Workload's fields are known to be of the chosen group; a field that is left out is not known.
Known = Mapping[str, Any]

PEAK, PARTITIONS, HOTTEST = "capacity_peak", "capacity_partitions", "capacity_hottest"
_CONCURRENCY = "capacity_concurrency"
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
    "outage_seconds": _Number(
        "capacity_sized_outage_min",
        "An outage takes",
        "min",
        0.0,
        0.0,
        43_200.0,
        "An outage, at peak, that must be caught up with as well; 0 asks for none.",
        scale=60.0,
        step=10.0,
    ),
    "outage_catch_up_seconds": _Number(
        "capacity_outage_catch_up_min",
        "Catch up with it within",
        "min",
        DEFAULT_OUTAGE_CATCH_UP_SECONDS / 60.0,
        1.0,
        43_200.0,
        "Time in which the backlog of that outage must be gone.",
        scale=60.0,
        step=30.0,
    ),
    "share_of_ceiling": _Number(
        "capacity_ceiling",
        "Fill a node to",
        "% of its ceiling",
        100.0 * defaults.DEFAULT_SHARE_OF_CEILING,
        1.0,
        99.9,
        "A node is given threads until it does this share of what its cores can do at most.",
        scale=0.01,
        step=1.0,
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


#: Numbers that a group may be known by. Left empty, they, and those of the load, are the chosen group's, as it is at
#: any time, or an example's; only what is typed goes into the address, so a link to a group stays up to date, and a
#: link to an assumption stays what it was.
_KNOWABLE = ("t1_seconds", "t2_seconds", "cores", "max_threads_per_node")


def forget_known() -> None:
    """Empty the fields that a group fills."""
    for key in (PEAK, PARTITIONS, HOTTEST, _CONCURRENCY, *(_NUMBERS[name].key for name in _KNOWABLE)):
        st.session_state[key] = None


def complaint(error: OutOfRange) -> str:
    """What is wrong, in the page's words."""
    names = {name: number.label for name, number in _NUMBERS.items()}
    names |= {"peak_rate_per_second": "Peak", "partitions": "Partitions", "hottest_share": "Hottest partition"}
    allowed = error.allowed.replace("t1_seconds", "T1").replace(" (in seconds)", "")
    return f"{names.get(error.argument, error.argument)} must be {allowed}."


def spoken(workload: Workload) -> dict[str, str]:
    """Every input as the page names and shows it."""
    w = workload
    hottest = "even" if w.hottest_share is None else f"{100 * w.hottest_share:.3g} %"
    said = {
        "Peak": f"{say_number(w.peak_rate_per_second)}/s",
        "Partitions": f"{w.partitions:,}",
        "Hottest partition": hottest,
    }
    for name, number in _NUMBERS.items():
        unit = "" if number.unit in ("or its CPU limit", "N+…") else f" {number.unit}"
        said[number.label] = f"{float(f'{getattr(w, name) / number.scale:.4g}'):,.12g}{unit}"
    return said | {"A node's threads": str(w.concurrency), "Order to keep": str(w.order)}


def show(known: Known) -> Workload:
    """Draw the inputs; what they ask. Raises OutOfRange where two of them do not fit together."""
    numbers = {"peak_rate_per_second": _peak(known)}
    left, right = st.columns(2)
    with left:
        partitions = _partitions(known)
        numbers["t1_seconds"] = _number("t1_seconds", known)
    with right:
        hottest = _hottest(known, partitions)
        numbers["t2_seconds"] = _number("t2_seconds", known)
    numbers["cores"] = _number("cores", known)
    concurrency, ordering = _concurrency(known), _ordering()
    with st.expander("Slack and limits"):
        left, right = st.columns(2)
        for i, name in enumerate(list(_NUMBERS)[3:]):
            with (left, right)[i % 2]:
                numbers[name] = _number(name, known)
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


def _number(name: str, known: Known) -> float:
    of = _NUMBERS[name]
    usual, is_known = of.usual, name in known
    if is_known:
        usual = min(max(float(f"{known[name] / of.scale:.4g}"), of.low), of.high)
    typed = st.number_input(
        f"{of.label} ({of.unit})",
        min_value=of.low,
        max_value=of.high,
        value=None if name in _KNOWABLE else of.usual,
        step=of.step,
        placeholder=f"{usual:.12g}, {_source(is_known)}",
        format="%g",
        key=of.key,
        bind="query-params",
        help=of.help,
    )
    # 70 % is 0.7, not 0.7000000000000001
    return float(f"{(usual if typed is None else typed) * of.scale:.12g}")


def _peak(known: Known) -> float:
    peak = known.get("peak_rate_per_second")
    usual = _EXAMPLE_PEAK if peak is None else _rounded_up(peak)
    typed = st.number_input(
        "Peak (messages/s)",
        min_value=0.0,
        max_value=1e12,
        value=None,
        step=100.0,
        placeholder=f"{usual:.12g}, {_source(peak is not None)}",
        format="%g",
        key=PEAK,
        bind="query-params",
        help="Messages per second at peak.",
    )
    return usual if typed is None else typed


def _partitions(known: Known) -> int:
    usual: int = min(known.get("partitions", _EXAMPLE_PARTITIONS), MAX_PARTITIONS)
    typed = st.number_input(
        "Partitions",
        min_value=1,
        max_value=MAX_PARTITIONS,
        value=None,
        step=1,
        placeholder=f"{usual}, {_source('partitions' in known)}",
        key=PARTITIONS,
        bind="query-params",
        help="Partitions of the topic (queues, in RocketMQ).",
    )
    return usual if typed is None else typed


def _hottest(known: Known, partitions: int) -> float | None:
    """The share; None is even. The group's own is no longer true with another number of partitions."""
    share = known.get("hottest_share") if known.get("partitions") == partitions else None
    share = None if share is None or share < 1.01 / partitions else float(f"{share:.3g}")
    typed = st.number_input(
        "Hottest partition (%)",
        min_value=0.0,
        max_value=100.0,
        value=None,
        step=1.0,
        placeholder="even" if share is None else f"{100 * share:.4g}, {_source(True)}",
        format="%g",
        key=HOTTEST,
        bind="query-params",
        help="Share of the traffic in the hottest partition; 0 takes it as even, the same for all partitions.",
    )
    if typed is None:
        return share
    return typed / 100.0 if typed > 0.0 else None


def _source(is_known: bool) -> str:
    return "from the group" if is_known else "as an example"


def _concurrency(known: Known) -> Concurrency:
    usual = Concurrency(known.get("concurrency", Concurrency.CONSUMER_PER_THREAD))
    chosen = st.selectbox(
        "A node's threads",
        [c.value for c in Concurrency],
        index=None,
        placeholder=f"{usual}, {_source('concurrency' in known)}",
        key=_CONCURRENCY,
        bind="query-params",
        help="Kafka's consumer belongs to one thread. Either every thread has one of its own, and works only while "
        "it holds a partition (consumer-per-thread); or one consumer a node hands its messages to many threads (pool).",
    )
    return Concurrency(chosen) if chosen else usual


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

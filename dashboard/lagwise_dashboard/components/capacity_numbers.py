"""The numbers of the capacity page: key in the address, range, and what each means."""

from dataclasses import dataclass

from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.formulas import DEFAULT_OUTAGE_CATCH_UP_SECONDS
from lagwise.domain.sizing.ranges import MAX_CORES, MIN_CORES


@dataclass(frozen=True, slots=True)
class Number:
    """One number to type in, in the unit shown. ``usual`` is None where it may be known, or is asked for."""

    key: str
    usual: float | None
    low: float
    high: float
    help: str
    step: float | None = None


#: The rest, by the name of the Workload's field. ``usual`` is what stands there where nothing is typed; None: nothing.
NUMBERS = {
    "seconds_per_message": Number(
        "capacity_message_ms",
        None,
        0.000001,
        8.64e7,
        "Time per message as a whole, waiting and computing, which is all that is known of a group without a probe.",
        step=1.0,
    ),
    "t1_seconds": Number(
        "capacity_t1_ms",
        None,
        0.0,
        8.64e7,
        "Time per message spent waiting for something outside: I/O, a database, a lock. Waiting for a core is not part "
        "of it.",
        step=1.0,
    ),
    "t2_seconds": Number("capacity_t2_ms", None, 0.0, 8.64e7, "Time per message on the CPU.", step=1.0),
    "cores": Number(
        "capacity_cores",
        None,
        MIN_CORES,
        MAX_CORES,
        "Hyper-threads are not whole cores. A container's CPU limit may be a fraction.",
        step=1.0,
    ),
    "target_utilisation": Number(
        "capacity_utilisation",
        None,
        1.0,
        100.0,
        "How much of the capacity the demand may use. The rest is for bursts and for being wrong.",
        step=5.0,
    ),
    "spare_nodes": Number("capacity_spare", 1.0, 0.0, 100.0, "Nodes that may fail at once.", step=1.0),
    "catch_up_seconds": Number(
        "capacity_catch_up_min",
        defaults.DEFAULT_CATCH_UP_SECONDS / 60.0,
        1.0,
        43_200.0,
        "Time in which the backlog of a restart, and the one below, must be gone.",
        step=5.0,
    ),
    "restart_seconds": Number(
        "capacity_restart_s",
        defaults.DEFAULT_RESTART_SECONDS,
        0.0,
        86_400.0,
        "How long nothing is read: the 45 s after which Kafka gives up a crashed consumer, and a rebalance.",
        step=10.0,
    ),
    "outage_seconds": Number(
        "capacity_sized_outage_min",
        0.0,
        0.0,
        43_200.0,
        "An outage, at peak, that must be caught up with as well; 0 asks for none.",
        step=10.0,
    ),
    "outage_catch_up_seconds": Number(
        "capacity_outage_catch_up_min",
        DEFAULT_OUTAGE_CATCH_UP_SECONDS / 60.0,
        1.0,
        43_200.0,
        "Time in which the backlog of that outage must be gone.",
        step=30.0,
    ),
    "share_of_ceiling": Number(
        "capacity_ceiling",
        100.0 * defaults.DEFAULT_SHARE_OF_CEILING,
        1.0,
        99.9,
        "A node is given threads until it does this share of what its cores can do at most.",
        step=1.0,
    ),
    "lag": Number("capacity_lag", 0.0, 0.0, 1e15, "Messages that already wait.", step=1_000.0),
    "max_threads_per_node": Number(
        "capacity_max_threads", None, 1.0, 10_000.0, "No node is given more threads than this.", step=1.0
    ),
}

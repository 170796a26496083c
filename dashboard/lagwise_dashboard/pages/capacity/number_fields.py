"""The numbers of the capacity page: where each stands in the address, and what it means."""

from dataclasses import dataclass

import streamlit as st

from lagwise.links import parameters
from lagwise.links.parameter_types import Number
from lagwise_dashboard import address


@dataclass(frozen=True, slots=True)
class Field:
    """One number to type in, in the unit shown, and how far a click on its buttons goes. What the address holds without
    it is None where it may be known, or is asked for."""

    parameter: Number
    step: float
    help: str


#: The numbers by the name of the Workload's field.
FIELDS = {
    "seconds_per_message": Field(
        parameters.MESSAGE_MS,
        1.0,
        "Time per message as a whole, waiting and computing, which is all that is known of a group without a probe.",
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
        "How much of the capacity the demand may use. The rest is for bursts and for being wrong.",
    ),
    "spare_nodes": Field(parameters.SPARE_NODES, 1, "Nodes that may fail at once."),
    "catch_up_seconds": Field(
        parameters.CATCH_UP, 5.0, "Time in which the backlog of a restart, and the one below, must be gone."
    ),
    "restart_seconds": Field(
        parameters.RESTART,
        10.0,
        "How long nothing is read: the 45 s after which Kafka gives up a crashed consumer, and a rebalance.",
    ),
    "outage_seconds": Field(
        parameters.SIZED_OUTAGE, 10.0, "An outage, at peak, that must be caught up with as well; 0 asks for none."
    ),
    "outage_catch_up_seconds": Field(
        parameters.OUTAGE_CATCH_UP, 30.0, "Time in which the backlog of that outage must be gone."
    ),
    "share_of_ceiling": Field(
        parameters.CEILING, 1.0, "A node is given threads until it does this share of what its cores can do at most."
    ),
    "lag": Field(parameters.BACKLOG, 1000.0, "Messages that already wait."),
    "max_threads_per_node": Field(parameters.MAX_THREADS, 1, "No node is given more threads than this."),
}


def number_input(
    parameter: Number, label: str, *, step: float, placeholder: str | None = None, help: str | None = None
) -> float | None:
    """A field for a number of the address; what the address holds."""
    st.number_input(
        label,
        min_value=parameter.low,
        max_value=parameter.high,
        value=None,
        step=step,
        placeholder=placeholder,
        format="%d" if parameter.is_whole else "%g",
        help=help,
        **address.bound(parameter),
    )
    return address.get(parameter)

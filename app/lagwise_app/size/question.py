"""What is asked of sizing: the inputs that were given, and those that are known of a group. No protocol, no prompt."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lagwise.domain.capacity.objective_demand import OTHER_PEAK
from lagwise.domain.sizing.group_workload import NEEDED, missing_of, workload_from
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit
from lagwise_app.size.answer import sizing_report
from lagwise_app.size.bad_question import BadQuestion
from lagwise_app.size.group_capacity import MeasuredGroup
from lagwise_dashboard.report.capacity_report import CapacityReport

#: The inputs whose source is shown for a group.
REPORTED_INPUTS = (
    "seconds_per_message", *NEEDED, "objective_rate_per_second", "objective_seconds", "hottest_share", "lag",
)  # fmt: skip
_NODE_INPUTS = frozenset({"t1_seconds", "t2_seconds", "cores"})
_TIMES = frozenset({"t1_seconds", "seconds_per_message"})


@dataclass(frozen=True, slots=True)
class SizingQuestion:
    """The inputs. Messages call them what the asker calls them."""

    #: Every input; what was not given has its default, or None.
    values: Mapping[str, Any]
    #: Those that were given.
    given: Set[str]
    #: What the asker calls each input, the `group`, and the `horizon_seconds`.
    called: Mapping[str, str]

    def check_alone(self, horizon_seconds: float | None) -> None:
        """Raise BadQuestion where the inputs are not enough without a group."""
        values, called, a_group = self.values, self.called, f"a {self.called['group']}"
        by_objective = values["objective_rate_per_second"] is not None
        if horizon_seconds is not None:
            raise BadQuestion(
                f"{called['horizon_seconds']} needs {a_group}, whose topic has a forecast: name one, or give "
                f"{called['peak_rate_per_second']}"
            )
        if values["objective_seconds"] is not None and not by_objective:
            raise BadQuestion(
                f"{called['objective_seconds']} needs {a_group}, whose minutes are recorded: name one, or "
                f"{called['objective_rate_per_second']}"
            )
        if needed := [called[name] for name in missing_of(values)]:
            them = "it" if len(needed) == 1 else "them"
            raise BadQuestion(f"missing {', '.join(needed)}: give {them}, or name a watched {called['group']}")
        if "size_by" in self.given and values["size_by"] == SizeBy.OBJECTIVE and not by_objective:
            raise BadQuestion(
                f"{called['size_by']} objective needs {a_group} with recorded minutes: name one, or "
                f"{called['objective_rate_per_second']}"
            )
        if (values["objective_rate_per_second"] or 0.0) > values["peak_rate_per_second"] >= 0.0:
            raise BadQuestion(
                f"{called['objective_rate_per_second']} must be {called['peak_rate_per_second']} at most: no objective "
                "takes more than the peak"
            )

    def check(self) -> None:
        """Raise BadQuestion where given inputs exclude each other."""
        called, of_nodes = self.called, self.given & _NODE_INPUTS
        nodes = f"{called['t1_seconds']}, {called['t2_seconds']} and {called['cores']}"
        if "seconds_per_message" in self.given and of_nodes:
            raise BadQuestion(f"{called['seconds_per_message']} replaces {nodes}: give either")
        if "unit" in self.given and of_nodes:
            raise BadQuestion(f"{called['unit']} goes with {called['seconds_per_message']}; {nodes} size nodes")

    def size_by(self, usual: str) -> SizeBy:
        """What to size by; ``usual`` is what the settings say."""
        return SizeBy(self.values["size_by"] if "size_by" in self.given else usual)


@dataclass(frozen=True, slots=True)
class Sizing:
    """The answer, with the inputs that it was worked out from and where each is from."""

    report: CapacityReport
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    load_test: str | None


def answer(
    question: SizingQuestion,
    known: MeasuredGroup | None,
    sources: Mapping[str, str],
    *,
    target_utilisation: float,
    now: datetime,
) -> Sizing:
    """The advice for what is asked, with what is ``known`` of a group in place of what was not given.

    ``sources`` say where each input is from that is not the group's. Raises BadQuestion.
    """
    given, called = question.given, question.called
    values: dict[str, Any] = {**question.values}
    if known is not None:
        values, sources = _with_group_values(known, values, sources, given)
        if "peak_rate_per_second" in given and "objective_rate_per_second" not in given:
            values["objective_rate_per_second"] = None
            sources = {**sources, "objective_rate_per_second": OTHER_PEAK}
        if given & _TIMES:
            known = replace(known, downstream=None)  # other times per message mean another downstream
    if "spare_nodes" in given and values["unit"] == Unit.SUBTASK:
        raise BadQuestion(f"a Flink job has no spare subtasks: leave {called['spare_nodes']} out, and keep slots free")
    values |= {"concurrency": Concurrency(values["concurrency"]), "unit": Unit(values["unit"])}
    values["size_by"] = SizeBy(values["size_by"])
    values["ordering"] = Ordering(values["ordering"]) if values["ordering"] else None
    missing = missing_of(values)
    try:
        workload = None if missing else workload_from(values)
        report = sizing_report(
            workload, known, missing=missing, sources=sources, target_utilisation=target_utilisation, now=now
        )
    except OutOfRange as error:
        if values["seconds_per_message"] is not None and error.argument in _NODE_INPUTS:
            # The time per message counts as T1, with a T2 of 0.
            raise BadQuestion("must be above 0, and a day at most.", called["seconds_per_message"]) from None
        raise BadQuestion(f"must be {_in_its_words(error.allowed, called)}.", called.get(error.argument)) from None
    return Sizing(report, values, sources, known.load_test if known else None)


def _with_group_values(
    known: MeasuredGroup, values: Mapping[str, Any], sources: Mapping[str, str], given: Set[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The inputs and their sources. What is known of the group replaces defaults, but nothing that was given."""
    # Some inputs size nodes with threads; the time per message sizes members.
    other: Set[str] = _NODE_INPUTS if "seconds_per_message" in given else frozenset()
    if given & _NODE_INPUTS:
        other = {"seconds_per_message", "unit"}
    taken = known.inputs.keys() - given - other
    values = {**values, **{name: known.inputs[name] for name in taken}}
    sources = {**sources, **{name: known.sources[name] for name in taken & known.sources.keys()}}
    unknown = [name for name in REPORTED_INPUTS if values[name] is None and name != "hottest_share"]
    return values, sources | {name: known.sources.get(name, "not known") for name in unknown}


def _in_its_words(allowed: str, called: Mapping[str, str]) -> str:
    """The allowed range with the inputs as the asker calls them, and without the unit where that is not in a name."""
    if called["t1_seconds"] != "t1_seconds":
        allowed = allowed.replace(" (in seconds)", "")
    for argument in ("t1_seconds", "t2_seconds"):
        allowed = allowed.replace(argument, called[argument])
    return allowed

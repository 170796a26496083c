"""Whether a Flink cluster has the task slots for the subtasks that are advised.

A slot takes one subtask of every vertex of a slot sharing group, so a group of vertices holds as many slots as its most
parallel one has subtasks. By default all vertices of a job are one group.
"""

from dataclasses import dataclass

from lagwise.domain.humanise import plural
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.workload import Unit


@dataclass(frozen=True, slots=True)
class TaskSlots:
    """The task slots for an advised parallelism."""

    #: Subtasks that are advised for the vertex that bounds the job.
    subtasks: int
    #: Slots of its slot sharing group now.
    held: int
    #: Slots of the cluster that no job has; None is not known.
    free: int | None

    @property
    def missing(self) -> int | None:
        """How many more slots are needed than it holds and are free, 0 where the subtasks fit; None is not known."""
        more = max(0, self.subtasks - self.held)
        if self.free is None:
            return None if more else 0
        return max(0, more - self.free)

    @property
    def sentence(self) -> str:
        """Whether the subtasks fit, with the numbers."""
        asked = plural(self.subtasks, "subtask")
        if self.subtasks <= self.held:
            is_enough = "is enough" if self.held == 1 else "are enough"
            return f"For {asked} the {plural(self.held, 'task slot')} that the job holds {is_enough}."
        if self.missing is None:
            more = plural(self.subtasks - self.held, "more task slot")
            than = f"than the {self.held:,} that it holds"
            return f"For {asked} the job takes {more} {than}; how many are free is not known."
        free = f"{self.free:,} {'is' if self.free == 1 else 'are'} free"
        if self.missing == 0:
            return f"The task slots for {asked} are there: the job holds {self.held:,}, and {free}."
        return (
            f"For {asked} {plural(self.missing, 'more task slot')} {'is' if self.missing == 1 else 'are'} needed (the "
            f"job holds {self.held:,}, and {free}); where TaskManagers are started on demand this does not bind."
        )

    def as_document(self) -> dict[str, object]:
        """As plain values for JSON."""
        return {"held": self.held, "free": self.free, "missing": self.missing, "sentence": self.sentence}


def free_of(total: int | None, free: int | None) -> int | None:
    """The free ones, as far as they say anything. A cluster without any slots starts its TaskManagers on demand: how
    many it may start is not known."""
    return free if total else None


def task_slots_for(advice: SizingAdvice | None, held: int | None, free: int | None) -> TaskSlots | None:
    """The slots for what is advised; None where that is no subtasks, or it is not known how many are held."""
    if advice is None or advice.triple is None or advice.workload.unit is not Unit.SUBTASK or held is None:
        return None
    return TaskSlots(advice.triple.nodes, held, free)

"""What is worth saying of an assignment, in sentences with numbers."""

from collections.abc import Mapping

from lagwise.domain.assignment.bound import BoundCause
from lagwise.domain.assignment.view import Alternative, AssignmentView
from lagwise.domain.humanise import plural

#: An assignment is worth changing if the busiest member would be less busy by this factor.
WORTH_CHANGING = 1.2
#: Skew that no assignment removes is mentioned from this factor over an even share on.
WORTH_MENTIONING = 1.5
#: Of assignors that give as much, the one that moves least is named; of those the group's own, then this order.
_PREFERRED = ("cooperative-sticky", "sticky", "roundrobin", "range")


def findings(view: AssignmentView, labels: Mapping[str, str]) -> tuple[str, ...]:
    """The sentences, worst first; none if all is well. ``labels`` are people's names of the members by member id.

    First the traffic that one member carries, then members that have nothing to do; how partitions are counted is
    worth a word only where the traffic is not known.
    """
    found = [_traffic(view, labels), _idle(view)]
    if view.now.busiest_share is None:
        found.append(_counted(view))
    return tuple(sentence for sentence in found if sentence is not None)


def _traffic(view: AssignmentView, labels: Mapping[str, str]) -> str | None:
    now = view.now
    if now.busiest is None or now.busiest_share is None or view.bound_share is None:
        return None
    # Members that no partition is left for do not make the share of the others too large.
    skew = now.busiest_share * min(now.members, view.partitions or 1)
    if skew < WORTH_CHANGING:
        return None
    carries = f"{labels[now.busiest]} carries {_share(now.busiest_share)} of the traffic"
    least = f"no assignment can bring that below {_share(view.bound_share)}{_because(view)}"
    attainable = view.attainable_share
    if now.busiest_share < WORTH_CHANGING * (attainable or view.bound_share):
        if skew < WORTH_MENTIONING or view.bound_cause is BoundCause.EVEN_SHARE:
            return None
        more = ", and neither can more members" if view.bound_cause is BoundCause.HOTTEST_PARTITION else ""
        return f"{carries}; {least}{more}."
    best = _best(view)
    if best is not None:
        moves = f", moving {plural(best.partitions_moved, 'partition')}" if best.partitions_moved else ""
        share = _share(_busiest_share(best))
        return f"{carries}; {_would(best, view)} bring the busiest member to {share}{moves}; {least}."
    if attainable is None:
        return f"{carries}; {least}."
    if not view.alternatives:
        return f"{carries}; distributed by traffic, {_share(attainable)} could be reached; {least}."
    return (
        f"{carries}; Kafka's assignors count partitions and would not change that, "
        f"though {_share(attainable)} can be reached; {least}."
    )


def _best(view: AssignmentView) -> Alternative | None:
    """The assignor that is worth changing to for the sake of the busiest member."""
    best = min(view.alternatives, key=lambda a: (_busiest_share(a), *_trouble(a, view)), default=None)
    worth_it = best is not None and (view.now.busiest_share or 0.0) >= WORTH_CHANGING * _busiest_share(best)
    return best if worth_it else None


def _busiest_share(alternative: Alternative) -> float:
    share = alternative.figures.busiest_share
    return 1.0 if share is None else share


def _trouble(alternative: Alternative, view: AssignmentView) -> tuple[int, bool, int]:
    other = alternative.assignor != view.assignor
    return alternative.partitions_moved, other, _PREFERRED.index(alternative.assignor)


def _would(alternative: Alternative, view: AssignmentView) -> str:
    own = alternative.assignor == view.assignor
    return f"the next rebalance ({alternative.assignor}) would" if own else f"{alternative.assignor} would"


def _because(view: AssignmentView) -> str:
    if view.hottest is None or view.hottest_share is None:
        return ""
    match view.bound_cause:
        case BoundCause.HOTTEST_PARTITION:
            topic, number = view.hottest
            return f", because partition {topic}-{number} alone is {_share(view.hottest_share)}"
        case BoundCause.TOGETHER:
            partitions = plural(view.partitions or 0, "partition")
            return f", because {partitions} of such rates cannot be split evenly over {view.now.members:,} members"
    return ", an even share"


def _idle(view: AssignmentView) -> str | None:
    now = view.now
    if not now.idle_members:
        return None
    some = f"{now.idle_members:,} of {plural(now.members, 'member')} {'is' if now.idle_members == 1 else 'are'} idle"
    if now.idle_members == now.members == 1:
        some = "The only member is idle"
    if view.partitions is None:
        return f"{some}."
    if view.partitions == 0:
        return f"{some}: the group owns no partition."
    there_are = plural(view.partitions, "partition")
    if now.idle_members == now.members - view.partitions:
        return f"{some}: the group's topics have {there_are}."
    fewest = min((a.figures.idle_members for a in view.alternatives), default=now.idle_members)
    better = [a for a in view.alternatives if a.figures.idle_members == fewest < now.idle_members]
    if not better:
        return f"{some}, although the group's topics have {there_are}."
    rest = "none" if fewest == 0 else f"{fewest:,}"
    best = min(better, key=lambda a: (_busiest_share(a), *_trouble(a, view)))
    return f"{some}, although the group's topics have {there_are}; {_would(best, view)} leave {rest} idle."


def _counted(view: AssignmentView) -> str | None:
    """Said where no traffic is known: a member that reads many more partitions than it would have to."""
    now = view.now
    if not view.alternatives or not view.partitions or (now.skew_by_count or 0.0) < WORTH_MENTIONING:
        return None
    best = min(view.alternatives, key=lambda a: (a.figures.most_partitions, *_trouble(a, view)))
    most = best.figures.most_partitions
    if now.most_partitions < most + 2:
        return None
    return (
        f"One member owns {now.most_partitions:,} of {plural(view.partitions, 'partition')}; "
        f"{_would(best, view)} give none more than {most:,}."
    )


def _share(share: float) -> str:
    """In whole per cent from ten on, a tenth below."""
    per_cent = 100 * share
    return f"{per_cent:.0f} %" if per_cent >= 9.95 else f"{per_cent:.1f} %"

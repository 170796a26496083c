"""The advice in words."""

from lagwise.domain.humanise import per_cent, plural, precise_duration, significant
from lagwise.domain.sizing.triple_search import (
    Binding,
    Triple,
    find_triple,
    hottest_key_share,
    largest_capacity_per_second,
    node_at,
    nodes_by_cpu,
    thread_limit,
    without_thread_limit,
)
from lagwise.domain.sizing.workload import DEFAULT_MAX_THREADS_PER_NODE, Concurrency, Ordering, Unit, Workload

#: Kafka's default `max.poll.interval.ms`: whoever works on one message for longer loses its partitions.
_LONGEST_POLL_INTERVAL_SECONDS = 300.0


def verdict(workload: Workload, triple: Triple | None, binding: Binding) -> str:
    """What is advised and what binds, or why there is no answer, in two to four sentences."""
    said = _why_not(workload, binding) if triple is None else _what_carries(workload, triple, binding)
    said += _planned_with(workload)
    if not is_unit_doubtful(workload):
        return said
    takes = precise_duration(workload.t1_seconds + workload.t2_seconds)
    return (
        f"{said} Each message takes {takes}: is the unit right? A Kafka consumer that works on one for longer than "
        "`max.poll.interval.ms` (5 min by default) loses its partitions."
    )


def is_unit_doubtful(workload: Workload) -> bool:
    """Whether a message takes longer than a Kafka consumer may work on one: that is rather a mistake in the unit than a
    reason to buy or to change anything."""
    takes = workload.t1_seconds + workload.t2_seconds
    return takes > _LONGEST_POLL_INTERVAL_SECONDS and workload.unit is not Unit.SUBTASK


def _planned_with(workload: Workload) -> str:
    """What the objective takes beside the highest minute; nothing where only the peak is known."""
    if workload.objective_rate_per_second is None:
        return ""
    of = "" if workload.objective_seconds is None else f" of {precise_duration(workload.objective_seconds)}"
    takes, peak = (significant(r) for r in (workload.objective_rate_per_second, workload.peak_rate_per_second))
    by = "the objective" if workload.is_by_objective else "the highest minute"
    return f" Sized by {by}: the objective{of} takes {takes} messages/s, the highest minute {peak}."


def _what_carries(workload: Workload, triple: Triple, binding: Binding) -> str:
    unit = workload.unit
    spare = f", and {plural(triple.spare_nodes, f'spare {unit}')}," if triple.spare_nodes else ""
    with_threads = "" if workload.by_members else f" with {plural(triple.threads_per_node, 'thread')}"
    each = " each" if with_threads and triple.working_nodes > 1 else ""
    subject = f"{plural(triple.working_nodes, unit)}{with_threads}{each}{spare}"
    carries = "carries" if triple.working_nodes == 1 and not triple.spare_nodes else "carry"
    sentences = [
        f"{subject} {carries} this load on {plural(triple.partitions, 'partition')}: "
        f"{significant(workload.required_rate_per_second)} messages/s of capacity are needed, "
        f"{significant(triple.capacity_per_second)} are there"
        + (f" even without the spare {unit}{'s' if triple.spare_nodes > 1 else ''}." if spare else "."),
        _what_binds(workload, triple, binding),
    ]
    if triple.idle_threads:
        one, unit_of_work = triple.idle_threads == 1, unit if workload.by_members else "thread"
        sentences.append(
            f"{triple.idle_threads:,} of all {plural(triple.nodes * triple.threads_per_node, unit_of_work)} "
            f"{'has' if one else 'have'} nothing to read"
            + (f" and {'stands' if one else 'stand'} by until a {unit} fails." if triple.spare_nodes else ".")
        )
    return " ".join(sentences)


def _what_binds(workload: Workload, triple: Triple, binding: Binding) -> str:
    match binding:
        case Binding.CPU:
            return (
                "The cores bind: more load needs more nodes, more cores, or less CPU time per message (T2); "
                "more threads would add little."
            )
        case Binding.WAITING:
            node = node_at(workload, thread_limit(workload))
            return (
                f"Waiting binds: with {plural(node.threads, 'thread')}, the most a node may have here, its cores are "
                f"only {per_cent(node.core_utilisation)} busy. A shorter T1 (batches, asynchronous calls, a cache) "
                f"saves nodes, more cores do not. {_more_threads(workload, triple)}".rstrip()
            )
        case Binding.TIME:
            takes = precise_duration(workload.t1_seconds)
            return (
                f"The time per message binds: a {workload.unit} takes {takes} for one, so it does at most "
                f"{significant(node_at(workload, 1).rate_per_second)} a second. {_not_known_apart(workload)}"
            )
        case Binding.PARTITIONS:
            return f"{_partitions_bind(workload, triple)} {_more_threads(workload, triple)}".rstrip()
        case Binding.SKEW:
            return (
                f"The hottest partition binds: it carries {per_cent(workload.hottest)} of the traffic, and its reader "
                f"is full before the others are; {_at_most(workload, triple)}."
            )
        case _:
            if workload.demand_rate_per_second == 0.0:
                return "Nothing arrives: the smallest set-up is enough."
            if workload.by_members:
                return f"Nothing binds but the demand: one {workload.unit} is enough. {_not_known_apart(workload)}"
            return "Nothing binds but the demand: one node is enough and is not even full."


def _more_threads(workload: Workload, triple: Triple) -> str:
    """What more threads a node would save, where fewer were asked for than usual; empty where that is nothing, and for
    processes of one thread."""
    if not 1 < workload.max_threads_per_node < DEFAULT_MAX_THREADS_PER_NODE:
        return ""
    free = find_triple(without_thread_limit(workload))
    if free is None or free.working_nodes >= triple.working_nodes:
        return ""
    limit = plural(workload.max_threads_per_node, "thread")
    return (
        f"A node may have {limit} here: with {free.threads_per_node:,}, {plural(free.working_nodes, 'node')} would do."
    )


def _not_known_apart(workload: Workload) -> str:
    """What is not known, and what would show it."""
    whole = precise_duration(workload.t1_seconds)
    part = f"How much of the {whole} is CPU time is unknown, and so is the number of {workload.unit}s that fit on"
    if workload.unit is Unit.SUBTASK:
        return f"{part} a TaskManager: its CPU load would show it."
    return f"{part} a node: a probe would show it, and whether threads would save some."


def _partitions_bind(workload: Workload, triple: Triple) -> str:
    """That the partitions' number is the limit or, where it is none, that it does not divide evenly."""
    fewer = nodes_by_cpu(workload)
    is_thread = workload.concurrency is Concurrency.CONSUMER_PER_THREAD and not workload.by_members
    least, left = divmod(workload.partitions, fewer * (triple.threads_per_node if is_thread else 1))
    if left and least and fewer < triple.working_nodes:
        return (
            f"Partitions are assigned by count. With {plural(fewer, workload.unit)}, which would otherwise be enough, "
            f"each {'thread' if is_thread else workload.unit} would read {least:,} or {least + 1:,}, and those with "
            f"{least + 1:,} would be full first."
        )
    return f"The partitions bind: {_at_most(workload, triple)}."


def _at_most(workload: Workload, triple: Triple) -> str:
    most = significant(largest_capacity_per_second(workload))
    said = f"no number of {workload.unit}s does more than {most} messages/s"
    fewer = nodes_by_cpu(workload)
    if fewer < triple.working_nodes:
        said += f", and without that limit {plural(fewer, workload.unit)} would do"
    return said


def _why_not(workload: Workload, binding: Binding) -> str:
    needed = significant(workload.required_rate_per_second)
    most = significant(largest_capacity_per_second(workload))
    by_node = workload.order is Ordering.NONE
    thread = workload.unit if workload.by_members else "thread"
    what = f"{workload.unit}s" if workload.by_members else "nodes and threads"
    nothing = f"No number of {what} carries this load"
    if binding is Binding.ORDERING:
        return (
            f"{nothing}: global order allows one {thread}, which does at most {most} messages/s; {needed} are needed."
        )
    if binding is Binding.SKEW:
        hot = workload.required_rate_per_second * workload.hottest
        if by_node:
            one = significant(node_at(workload, thread_limit(workload)).rate_per_second)
            limit = f"one {workload.unit} reads it, which does at most {one}"
        else:
            one = significant(node_at(workload, 1).rate_per_second)
            limit = f"one {thread} handles it, message after message, and does at most {one}"
        return (
            f"{nothing}: the hottest partition carries {per_cent(workload.hottest)} of the traffic, "
            f"{significant(hot)} of the {needed} messages/s needed, "
            f"and {limit}."
        )
    reader = workload.unit if by_node else thread
    does = f"is {'read' if by_node else 'handled'} by one {reader}"
    have = "has" if workload.partitions == 1 else "have"
    makes = "that makes"
    if workload.hottest > 1.01 / workload.partitions:
        makes = f"with {per_cent(workload.hottest)} of the traffic in the hottest partition that makes"
    return (
        f"{nothing} on {plural(workload.partitions, 'partition')}: each {does} "
        f"at a time, so at most {plural(workload.partitions, reader)} {have} anything to do, and {makes} at most "
        f"{most} messages/s; {needed} are needed."
    )


def explain_concurrency(workload: Workload, threads: int) -> str:
    """What is assumed of how the messages reach the ``threads`` of a node, in a sentence or two."""
    if workload.order is Ordering.GLOBAL:
        return "All messages are handled one after the other, by one thread."
    if workload.unit is Unit.SUBTASK:
        return (
            "Each subtask is taken as one thread that handles one message after the other, of a source: one without a "
            "partition has nothing to do. Behind a keyBy more subtasks than partitions may work."
        )
    if workload.by_members:
        return (
            f"Each {workload.unit} is taken as one thread that handles one message after the other: a {workload.unit} "
            "without a partition has nothing to do."
        )
    if workload.concurrency is Concurrency.CONSUMER_PER_THREAD:
        each = (
            "Each thread is a consumer of its own: a thread without a partition has nothing to do, and a partition's "
        )
        if workload.ordering is Ordering.NONE:
            return f"{each}order is kept. Only a pool could exploit that order does not matter."
        return f"{each}order is kept."
    if workload.order is Ordering.PARTITION:
        return "One consumer per node hands its messages to a pool of threads that keeps each partition's order."
    return (
        "One consumer per node hands its messages to a pool of threads: the order within a partition is not kept. "
        "Where the pool keeps the order of each key, a key is one thread's work, and the hottest one may have at most "
        f"{per_cent(hottest_key_share(workload, threads))} of the traffic."
    )

"""The advice: what binds and why (a proof table), and what must hold of every answer."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.advice_text import explain_concurrency
from lagwise.domain.sizing.changes import ChangeKind, partition_cost_sentence
from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.triple_search import (
    Binding,
    Triple,
    capacity_per_second,
    find_triple,
    largest_capacity_per_second,
    largest_planned_rate_per_second,
    node_at,
    nodes_by_cpu,
    thread_limit,
    what_binds,
)
from lagwise.domain.sizing.workload import Concurrency, Ordering, Workload

pytestmark = pytest.mark.thorough

reproducible = settings(max_examples=150)

POOL = Concurrency.POOL
#: 8 cores, 12 ms waiting, 3 ms computing: knee 40, 43 threads fill a node and do 2,555/s, one alone does 66.7/s.
#: 20,000/s at peak need 29,524/s of capacity, which is 12 nodes' work.
USUAL = Workload(t1_seconds=0.012, t2_seconds=0.003, cores=8, peak_rate_per_second=20_000, partitions=48)


# --- proof table: each row says why its answer is right. Changing a row needs a reason in the commit. -----------------

ROWS = [
    pytest.param(
        {"concurrency": POOL}, Binding.CPU, (13, 43), None, id="48 partitions feed 13 nodes, pools fill the cores"
    ),
    pytest.param(
        {"partitions": 480}, Binding.CPU, (13, 40), None, id="12 x 40 threads hold one partition each: it fits"
    ),
    pytest.param(
        {"cores": 4, "peak_rate_per_second": 1_000, "partitions": 24},
        Binding.PARTITIONS,
        (3, 12),
        None,
        id="one node's 1,274/s are too little; but 24 threads, 1,600/s, are full before two nodes' cores are",
    ),
    pytest.param(
        {"cores": 4, "peak_rate_per_second": 1_000, "partitions": 40, "hottest_share": 0.03},
        Binding.SKEW,
        (3, 20),
        None,
        id="the hottest partition's thread is full at 2,222/s, before two nodes' cores are; 40 even ones do 2,667/s",
    ),
    pytest.param({"partitions": 2000}, Binding.CPU, (13, 42), None, id="many partitions are dealt out almost evenly"),
    pytest.param(
        {}, Binding.PARTITIONS, None, ChangeKind.POOL, id="48 threads do 3,200/s; tenfold partitions are dear"
    ),
    pytest.param(
        {"partitions": 300}, Binding.PARTITIONS, None, ChangeKind.PARTITIONS, id="300 threads do 20,000/s; 480 is near"
    ),
    pytest.param(
        {"ordering": Ordering.PARTITION},
        Binding.PARTITIONS,
        None,
        ChangeKind.PARTITIONS,
        id="who asks for a partition's order is not offered a pool without it",
    ),
    pytest.param(
        {"concurrency": POOL, "partitions": 4},
        Binding.PARTITIONS,
        None,
        ChangeKind.PARTITIONS,
        id="4 nodes read 4 partitions and do 10,218/s",
    ),
    pytest.param(
        {"partitions": 660, "hottest_share": 0.01},
        Binding.SKEW,
        None,
        ChangeKind.SPREAD,
        id="the hottest partition needs 295/s of one thread",
    ),
    pytest.param(
        {"hottest_share": 0.1},
        Binding.PARTITIONS,
        None,
        ChangeKind.PARTITIONS,
        id="48 threads are too few however the keys are spread, and a tenth is too much for one node's pool",
    ),
    pytest.param(
        {"concurrency": POOL, "hottest_share": 0.1},
        Binding.SKEW,
        None,
        ChangeKind.SPREAD,
        id="the hottest partition needs 2,952/s of one node",
    ),
    pytest.param(
        {"partitions": 660, "hottest_share": 0.002},
        Binding.SKEW,
        (17, 42),
        ChangeKind.SPREAD,
        id="the hottest needs 59/s of one thread, which needs the cores half idle",
    ),
    pytest.param(
        {"peak_rate_per_second": 2_000, "lag": 5e7},
        Binding.PARTITIONS,
        None,
        ChangeKind.CATCH_UP,
        id="not the peak but 50 million messages in 30 min are too much",
    ),
    pytest.param({"ordering": Ordering.GLOBAL}, Binding.ORDERING, None, ChangeKind.FASTER, id="one thread does 66.7/s"),
    pytest.param(
        {"ordering": Ordering.GLOBAL, "partitions": 2_000},
        Binding.ORDERING,
        None,
        ChangeKind.ORDERING,
        id="with order per partition it would do",
    ),
    pytest.param(
        {"ordering": Ordering.GLOBAL, "peak_rate_per_second": 40, "partitions": 1},
        Binding.DEMAND,
        (2, 1),
        None,
        id="40/s, 59/s with slack, are within one thread's 66.7/s",
    ),
    pytest.param(
        {"peak_rate_per_second": 1_000}, Binding.DEMAND, (2, 24), None, id="24 threads hold 2 of 48 partitions each"
    ),
    pytest.param({"peak_rate_per_second": 0}, Binding.DEMAND, (2, 1), None, id="nothing arrives: one thread"),
    pytest.param(
        {"t2_seconds": 0.0, "concurrency": POOL, "peak_rate_per_second": 500_000, "partitions": 900},
        Binding.WAITING,
        (10, 1000),
        None,
        id="no CPU at all: 738,095/s of 83,333/s a node, as many threads as a node may have",
    ),
    pytest.param(
        {"t2_seconds": 0.0, "concurrency": POOL, "peak_rate_per_second": 500_000},
        Binding.PARTITIONS,
        (11, 1000),
        None,
        id="9 nodes would hold 5 or 6 of 48 partitions, and 6 are an eighth of the load; one node is not worth more",
    ),
    pytest.param(
        {"t1_seconds": 1.0, "concurrency": POOL, "peak_rate_per_second": 5_000},
        Binding.WAITING,
        (9, 1000),
        None,
        id="the knee lies at 2,675 threads, a node may have 1,000",
    ),
    pytest.param(
        {"t1_seconds": 0.0, "concurrency": POOL}, Binding.CPU, (13, 8), None, id="no waiting at all: a thread per core"
    ),
]


@pytest.mark.parametrize(("changed", "binds", "nodes_and_threads", "cheapest"), ROWS)
def test_proof_table(
    changed: dict[str, object], binds: Binding, nodes_and_threads: tuple[int, int] | None, cheapest: ChangeKind | None
) -> None:
    advice = advise(replace(USUAL, **changed))  # type: ignore[arg-type]  # the rows mix fields of several types
    assert advice.binds is binds
    found = (advice.nodes, advice.threads_per_node) if advice.triple else None
    assert found == nodes_and_threads
    assert (advice.changes[0].kind if advice.changes else None) == cheapest
    assert bool(advice.cheapest_change) == bool(advice.changes)


# --- what must always hold -------------------------------------------------------------------------------------------

workloads = st.builds(
    lambda skew, partitions, **rest: Workload(
        partitions=partitions,
        hottest_share=None if skew is None else 1 / partitions + skew * (1 - 1 / partitions),
        **rest,
    ),
    t1_seconds=st.floats(1e-4, 0.2),
    t2_seconds=st.floats(1e-4, 0.05),
    cores=st.sampled_from([0.5, 1, 2, 4, 8, 16]),
    peak_rate_per_second=st.floats(0, 20_000),
    partitions=st.integers(1, 200),
    skew=st.none() | st.floats(0, 0.3),
    lag=st.sampled_from([0.0, 1e4, 1e6]),
    spare_nodes=st.integers(0, 2),
    max_threads_per_node=st.sampled_from([10, 200]),
    concurrency=st.sampled_from(list(Concurrency)),
    ordering=st.none() | st.sampled_from(list(Ordering)),
)


@reproducible
@given(workloads)
def test_an_answer_is_enough_and_no_smaller_number_of_nodes_is(workload: Workload) -> None:
    triple = find_triple(workload)
    required = workload.required_rate_per_second
    most = 1 + 2 * min(thread_limit(workload), workload.max_threads_per_node)
    if workload.order is Ordering.NONE:
        most = thread_limit(workload)
    elif workload.concurrency is POOL:
        most = min(thread_limit(workload), workload.partitions)

    def possible(nodes: int) -> bool:
        threads = range(1, min(most, workload.max_threads_per_node) + 1)
        return any(capacity_per_second(workload, nodes, t) >= required * (1 + 1e-6) for t in threads)

    if triple is None:
        assert largest_capacity_per_second(workload) < required
        tried = {1, 2, 3, workload.partitions // 2, workload.partitions}
        assert workload.order is Ordering.GLOBAL or not any(possible(n) for n in tried if 0 < n <= workload.partitions)
        return
    assert triple.capacity_per_second >= required * (1 - 1e-6)
    assert triple.capacity_per_second == capacity_per_second(workload, triple.working_nodes, triple.threads_per_node)
    assert triple.working_nodes <= workload.partitions
    if triple.working_nodes > 1 and workload.concurrency is Concurrency.CONSUMER_PER_THREAD:
        assert not possible(triple.working_nodes - 1) or triple.working_nodes - 1 == 0


@reproducible
@given(workloads)
def test_an_answer_never_promises_more_than_cores_threads_or_partitions_can(workload: Workload) -> None:
    triple = find_triple(workload)
    if triple is None:
        return
    t1, t2 = workload.t1_seconds, workload.t2_seconds
    node = node_throughput(workload.cores, triple.threads_per_node, t1, t2)
    slack = 1 + 1e-9
    assert triple.capacity_per_second <= triple.working_nodes * node.rate_per_second * slack
    assert triple.threads_per_node <= workload.max_threads_per_node
    alone = node_throughput(workload.cores, 1, t1, t2).rate_per_second
    if workload.order is Ordering.PARTITION:
        useful = min(workload.partitions, triple.working_nodes * triple.threads_per_node)
        assert triple.capacity_per_second <= useful * alone * slack
        assert triple.capacity_per_second * workload.hottest <= alone * slack  # the hottest is one thread's work
        assert triple.idle_threads == max(0, triple.nodes * triple.threads_per_node - workload.partitions)
    if workload.order is Ordering.GLOBAL:
        assert triple.capacity_per_second <= alone * slack
        assert (triple.working_nodes, triple.threads_per_node) == (1, 1)


@reproducible
@given(workloads, st.floats(1.0, 3.0))
def test_a_higher_peak_never_takes_fewer_nodes(workload: Workload, growth: float) -> None:
    higher = replace(workload, peak_rate_per_second=workload.peak_rate_per_second * growth)
    now, then = find_triple(workload), find_triple(higher)
    if then is not None:
        assert now is not None
        assert then.nodes >= now.nodes


@reproducible
@given(workloads)
def test_the_peak_it_is_good_for_is_just_that(workload: Workload) -> None:
    triple = find_triple(workload)
    if triple is None:
        return
    peak = largest_planned_rate_per_second(workload, triple)
    assert peak >= workload.peak_rate_per_second * (1 - 1e-6) - 1e-6
    at_the_peak = replace(workload, peak_rate_per_second=peak)
    assert triple.capacity_per_second == pytest.approx(at_the_peak.required_rate_per_second, rel=1e-6)


@reproducible
@given(workloads)
def test_every_change_offered_gives_an_answer_that_is_better(workload: Workload) -> None:
    advice = advise(workload)
    if advice.triple is None:
        assert "No number of nodes and threads carries this load" in advice.verdict
    for change in advice.changes:
        assert find_triple(change.workload) == change.triple
        if advice.triple is not None:
            saved = advice.triple.nodes - change.triple.nodes
            assert saved >= 2 and saved >= 0.1 * advice.triple.nodes
        assert f"{change.triple.nodes:,} node" in change.sentence
    if advice.binds in (Binding.CPU, Binding.WAITING, Binding.DEMAND):
        assert advice.triple is not None
        assert advice.changes == ()


@reproducible
@given(workloads)
def test_what_binds_fits_the_answer(workload: Workload) -> None:
    triple = find_triple(workload)
    binds = what_binds(workload, triple)
    if triple is None:
        assert binds in (Binding.PARTITIONS, Binding.SKEW, Binding.ORDERING)
        return
    full = triple.working_nodes * node_at(workload, thread_limit(workload)).rate_per_second
    if binds in (Binding.CPU, Binding.WAITING):
        assert triple.working_nodes == nodes_by_cpu(workload)
        assert largest_capacity_per_second(workload) >= full  # a growing load meets the nodes' limit first
    elif binds in (Binding.PARTITIONS, Binding.SKEW):
        assert triple.working_nodes > nodes_by_cpu(workload) or largest_capacity_per_second(workload) < full
    else:
        assert binds is Binding.DEMAND
        assert triple.working_nodes == 1
    if binds is Binding.SKEW:
        even = replace(workload, hottest_share=None)
        assert largest_capacity_per_second(even) > largest_capacity_per_second(workload)


# --- single points ---------------------------------------------------------------------------------------------------


def test_rather_no_thread_idles_than_the_last_message_per_second() -> None:
    """On 2,000 partitions the nodes and the spare one find work for all threads."""
    triple = find_triple(replace(USUAL, partitions=2_000))
    assert triple is not None
    assert triple.idle_threads == 0


def test_where_each_partition_needs_its_thread_the_spare_nodes_threads_stand_by() -> None:
    triple = find_triple(replace(USUAL, partitions=480))
    assert triple is not None
    assert triple == Triple(480, 13, 1, 40, 40, triple.capacity_per_second)
    assert triple.capacity_per_second == pytest.approx(12 * 2464.96, abs=1.0)


def test_a_prime_number_of_partitions_is_no_reason_for_a_node_per_thread() -> None:
    triple = find_triple(replace(USUAL, partitions=487))
    assert triple is not None
    assert (triple.nodes, triple.threads_per_node) == (13, 41)


def test_no_spare_nodes() -> None:
    advice = advise(replace(USUAL, concurrency=POOL, spare_nodes=0))
    assert advice.nodes == 12
    assert "spare" not in advice.verdict


def test_a_pool_that_keeps_the_order_of_partitions_is_bound_like_consumers_but_shares_its_threads() -> None:
    """Two nodes of 4 threads on 12 partitions: no thread has to hold exactly one or two of them."""
    ordered = replace(USUAL, concurrency=POOL, ordering=Ordering.PARTITION, partitions=12, cores=4)
    assert capacity_per_second(ordered, 2, 4) == pytest.approx(2 * 4 / 0.015)
    consumers = replace(ordered, concurrency=Concurrency.CONSUMER_PER_THREAD)
    assert capacity_per_second(consumers, 2, 4) == pytest.approx(6 / 0.015)  # the busiest threads hold 2 of 12


def test_the_largest_topic_is_sized_in_reasonable_time_and_not_refused() -> None:
    triple = find_triple(
        Workload(t1_seconds=1, t2_seconds=0, cores=1, peak_rate_per_second=6e4, partitions=99_991, hottest_share=1.1e-5)
    )
    assert triple is not None
    assert triple.nodes * triple.threads_per_node >= 99_991


def test_figures_show_what_they_were_made_of() -> None:
    figures = {f.name: f for f in advise(USUAL).figures}
    assert figures["knee_threads_per_node"].value == pytest.approx(40.0)
    assert figures["knee_threads_per_node"].how == "C · (T1 + T2) / T2 = 8 · (12 ms + 3 ms) / 3 ms"
    assert figures["demand_rate_per_second"].value == pytest.approx(20_666.7, abs=0.1)
    assert figures["demand_rate_per_second"].how.endswith("= 20,000 · (1 + 1 min / 30 min)")
    assert figures["hottest_share"].how == "taken as even: 1 / 48 partitions"
    hot = {f.name: f for f in advise(replace(USUAL, hottest_share=0.1)).figures}["hottest_share"]
    assert hot.how == "2.08 % if all 48 partitions were alike"


def test_points_are_one_thread_the_knee_and_what_is_advised() -> None:
    advice = advise(replace(USUAL, concurrency=POOL))
    labels = {p.node.threads: p.label for p in advice.points}
    assert labels == {1: "one thread", 40: "the formula's knee", 43: "fills the node, advised"}
    knee = advice.points[1]
    assert knee.straight_line_rate_per_second == pytest.approx(2666.7, abs=0.1)
    assert knee.node.rate_per_second == pytest.approx(2465, abs=1)  # 92 % of what the formula promises


def test_a_knee_between_two_counts_is_shown_as_the_next_whole_thread() -> None:
    """Half a core, T1 four times T2: the knee is 2.5."""
    advice = advise(replace(USUAL, cores=0.5))
    assert {f.name: f.value for f in advice.figures}["knee_threads_per_node"] == pytest.approx(2.5)
    assert [p.node.threads for p in advice.points if "knee" in p.label] == [3]


def test_the_nodes_that_the_cores_need_are_not_more_than_those_that_carry_the_load() -> None:
    """More threads than fill a node do a little more, where consumers may have them to spread partitions."""
    asked = replace(
        USUAL, t1_seconds=0.002, t2_seconds=0.020, cores=1.5, peak_rate_per_second=100.0, partitions=30,
    )  # fmt: skip
    advice = advise(asked)
    assert advice.triple is not None
    needed = {f.name: f for f in advice.figures}["nodes_by_cpu"]
    assert (advice.triple.working_nodes, needed.value) == (2, 2)
    assert f"a node with the {advice.triple.threads_per_node} threads advised" in needed.how


@given(workloads)
@settings(max_examples=60, deadline=None)
def test_the_figures_agree_with_the_answer(workload: Workload) -> None:
    advice = advise(workload)
    figures = {f.name: f.value for f in advice.figures}
    if advice.triple is not None and workload.order is not Ordering.GLOBAL:
        assert (figures["nodes_by_cpu"] or 0) <= advice.triple.working_nodes
    assert ("hottest_key_share" in figures) == (workload.order is Ordering.NONE)


def test_the_bound_of_a_hot_key_is_stated_for_a_pool() -> None:
    """A key is one thread's work where a pool keeps the order of keys; with 43 threads one does 59.4/s."""
    advice = advise(replace(USUAL, concurrency=POOL))
    assert {f.name: f.value for f in advice.figures}["hottest_key_share"] == pytest.approx(59.4 / 29_524, rel=0.001)
    said = explain_concurrency(advice.workload, advice.threads)
    assert said.endswith("a key is one thread's work, and the hottest one may have at most 0.201 % of the traffic.")
    little = advise(replace(USUAL, concurrency=POOL, peak_rate_per_second=10.0))
    assert {f.name: f.value for f in little.figures}["hottest_key_share"] == 1.0


def test_an_order_that_does_not_matter_changes_nothing_for_consumers_of_their_own() -> None:
    asked = replace(USUAL, ordering=Ordering.NONE)
    assert "Only a pool could exploit that order does not matter." in explain_concurrency(asked, 40)
    assert "Only a pool" not in explain_concurrency(USUAL, 40)


def test_one_thread_has_nothing_to_read() -> None:
    asked = replace(USUAL, peak_rate_per_second=10.0, partitions=1)
    said = advise(asked).verdict
    assert "1 of all 2 threads has nothing to read and stands by until a node fails." in said


def test_document_is_plain_and_complete() -> None:
    advice = advise(replace(USUAL, t2_seconds=0.0))
    document: dict[str, Any] = advice.as_document({"t1_seconds": "typed in"})
    assert document["feasible"] is False
    assert document["triple"] is None
    assert document["figures"]["knee_threads_per_node"]["value"] is None  # infinite
    assert document["inputs"]["t1_seconds"] == {"value": 0.012, "source": "typed in"}
    assert set(document["inputs"]) == set(asdict(USUAL))


# --- members, where T1 and T2 are not known apart --------------------------------------------------------------------


@pytest.mark.parametrize("peak", [0.0, 100.0, 330.0, 6_000.0, 66_000.0])
@pytest.mark.parametrize("hottest", [None, 0.3])
def test_advice_on_members_mentions_no_nodes_threads_or_cores(peak: float, hottest: float | None) -> None:
    advice = advise(Workload.of_members(0.0025, peak_rate_per_second=peak, partitions=24, hottest_share=hottest))
    said = [advice.verdict, *(c.sentence for c in advice.changes), explain_concurrency(advice.workload, advice.threads)]
    said += [f"{f.label} {f.unit} {f.how}" for f in advice.figures]
    for word in ("core", "T1", "T2", "knee", "ceiling", "nodes", "threads each", "0 % busy"):
        assert not any(word in text.replace(NOT_APART, "") for text in said), word
    assert "member" in advice.verdict
    assert advice.points == ()


NOT_APART = (
    "How much of the 2.5 ms is CPU time is unknown, and so is the number of members that fit on a node: a probe would "
    "show it, and whether threads would save some."
)


def test_of_members_the_time_per_message_binds(golden_sentence: Callable[..., None]) -> None:
    advice = advise(Workload.of_members(0.0025, peak_rate_per_second=330, partitions=24))
    assert advice.binds is Binding.TIME
    golden_sentence(advice.verdict)
    inputs: Any = advice.as_document()["inputs"]
    assert (inputs["seconds_per_message"]["value"], inputs["t2_seconds"]["value"]) == (0.0025, None)
    with pytest.raises(OutOfRange):
        replace(advice.workload, t2_seconds=0.001)


# --- changes that are worth it ---------------------------------------------------------------------------------------

ONE_EACH: dict[str, Any] = {"t1_seconds": 0.004, "t2_seconds": 0.0, "cores": 1, "max_threads_per_node": 1}


def test_one_node_of_many_is_not_worth_partitions_that_cannot_be_taken_away(
    golden_sentence: Callable[..., None],
) -> None:
    advice = advise(Workload(**ONE_EACH, peak_rate_per_second=20_000, partitions=480))
    assert (advice.nodes, advice.changes) == (121, ())
    golden_sentence(advice.verdict)
    assert advise(Workload.of_members(1 / 40, peak_rate_per_second=66, partitions=6)).changes == ()


def test_a_limit_of_threads_that_costs_nodes_is_named(golden_sentence: Callable[..., None]) -> None:
    limited = replace(USUAL, peak_rate_per_second=20_000, partitions=480, max_threads_per_node=8)
    advice = advise(limited)
    assert advice.nodes == 61
    golden_sentence(advice.verdict)
    free = advise(replace(limited, max_threads_per_node=1_000))
    assert f"with {free.threads_per_node}, {free.nodes - 1} nodes would do" in advice.verdict


@pytest.mark.parametrize("times", [{"t1_seconds": 0.01, "t2_seconds": 10_800.0}, {"t1_seconds": 1_200.0}])
def test_nothing_is_changed_for_a_time_whose_unit_is_doubtful(times: dict[str, float]) -> None:
    advice = advise(replace(USUAL, **times, peak_rate_per_second=10, partitions=48))
    assert (advice.triple, advice.changes) == (None, ())
    assert "is the unit right?" in advice.verdict


def test_no_partitions_are_offered_where_keys_that_spread_better_are_as_good() -> None:
    hot = replace(USUAL, partitions=480, peak_rate_per_second=20_000, hottest_share=0.2)
    offered = advise(hot).changes
    assert [change.kind for change in offered] == [ChangeKind.SPREAD, ChangeKind.FASTER]
    assert offered[0].triple.nodes == 13


@pytest.mark.parametrize("ordering", [None, Ordering.GLOBAL])
def test_a_time_in_the_wrong_unit_is_asked_about_and_nobody_is_told_to_be_200_000_times_faster(
    ordering: Ordering | None, golden_sentence: Callable[..., None]
) -> None:
    advice = advise(replace(USUAL, t1_seconds=7_200.0, peak_rate_per_second=2_000, ordering=ordering))
    assert advice.changes == ()
    golden_sentence(advice.verdict)


def test_five_minutes_for_a_message_are_no_mistake() -> None:
    assert "unit" not in advise(replace(USUAL, t1_seconds=300.0 - USUAL.t2_seconds)).verdict


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"partitions": 0}, "partitions"),
        ({"partitions": 48.0}, "partitions"),
        ({"partitions": 10**7}, "partitions"),
        ({"hottest_share": 0.001}, "hottest_share"),
        ({"hottest_share": 1.1}, "hottest_share"),
        ({"hottest_share": float("nan")}, "hottest_share"),
        ({"spare_nodes": -1}, "spare_nodes"),
        ({"max_threads_per_node": 0}, "max_threads_per_node"),
        ({"share_of_ceiling": 1.0}, "share_of_ceiling"),
        ({"target_utilisation": 0.0}, "target_utilisation"),
        ({"peak_rate_per_second": -1.0}, "peak_rate_per_second"),
        ({"peak_rate_per_second": float("nan")}, "peak_rate_per_second"),
        ({"catch_up_seconds": 0.0}, "catch_up_seconds"),
        ({"t1_seconds": 0.0, "t2_seconds": 0.0}, "t2_seconds"),
        ({"cores": -1}, "cores"),
    ],
)
def test_bad_input_is_named_with_its_range(changed: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named} must be .*not "):
        replace(USUAL, **changed)  # type: ignore[arg-type]  # wrong on purpose


def test_hottest_share_may_be_a_rounded_even_share() -> None:
    assert replace(USUAL, hottest_share=0.0208).hottest == 1 / 48


def test_a_hard_outage_is_given_more_time_first() -> None:
    """An hour over 4 hours asks for 1,250/s, 1,786 with slack; 24 threads do 1,600. Over 8 hours it is 1,607: no."""
    outage = replace(USUAL, peak_rate_per_second=1_000, partitions=24, outage_seconds=3_600.0)
    assert find_triple(outage) is None
    first = advise(outage).changes[0]
    assert first.kind is ChangeKind.CATCH_UP
    assert first.sentence.startswith("Allow 12 h instead of 4 h to catch up: then")
    assert first.workload.outage_catch_up_seconds == 12 * 3_600.0


def test_the_largest_peak_counts_the_outage() -> None:
    workload = replace(USUAL, partitions=960, outage_seconds=3_600.0)
    triple = find_triple(workload)
    assert triple is not None
    peak = largest_planned_rate_per_second(workload, triple)
    assert peak == pytest.approx(triple.capacity_per_second * 0.7 / 1.25)
    assert find_triple(replace(workload, peak_rate_per_second=peak)) == triple


def test_the_cost_of_more_partitions_is_stated_only_with_them() -> None:
    for change in advise(USUAL).changes:
        if change.kind is ChangeKind.PARTITIONS:
            assert change.cost is not None
            assert change.cost.startswith("It costs: for each replica at least 432 open files and 864 memory maps more")
            assert change.cost.endswith("It cannot be undone.")
        else:
            assert change.cost is None
    with pytest.raises(OutOfRange, match="after"):
        partition_cost_sentence(48, 48)


def test_less_slack_is_offered_where_it_alone_would_do_and_comes_last() -> None:
    """24 threads do 1,600/s: 1,200/s need 1,714 at 70 %, and 1,600 at 75 %."""
    tight = replace(USUAL, peak_rate_per_second=1_200, partitions=24, restart_seconds=0.0)
    assert find_triple(tight) is None
    last = advise(tight).changes[-1]
    assert last.kind is ChangeKind.UTILISATION
    assert last.sentence.startswith("Let the demand use 75 % of the capacity instead of 70 %, with less slack: then")
    assert last.workload.target_utilisation == 0.75
    far = replace(tight, peak_rate_per_second=20_000)
    assert all(change.kind is not ChangeKind.UTILISATION for change in advise(far).changes)

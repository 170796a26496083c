"""The assignors on groups small enough to do by hand. That they are Kafka's is shown in tests/contract."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.assignment.assignors import ASSIGNORS, in_order
from lagwise.domain.assignment.java_order import JavaHashSet, string_hash, string_key
from lagwise.domain.assignment.model import Member, NotDeterminedError, Partition, owners
from lagwise.domain.assignment.sticky import moved


def group(subscriptions: Mapping[str, str], owned: Mapping[str, str] | None = None) -> list[Member]:
    """Members by name; topics have names of one letter; what is owned is written ``t0 t1``."""
    return [
        Member(
            name,
            frozenset(topics),
            frozenset((p[0], int(p[1:])) for p in (owned or {}).get(name, "").split()),
            generation=1,
        )
        for name, topics in subscriptions.items()
    ]


def shown(assignment: Mapping[str, frozenset[Partition]]) -> dict[str, str]:
    return {name: " ".join(f"{t}{p}" for t, p in sorted(owned)) for name, owned in assignment.items()}


#: Assignor, subscriptions, partitions, owned before, given, rebalances, and why.
TABLE = [
    ("range", {"x": "t", "y": "t", "z": "t"}, {"t": 7}, {}, {"x": "t0 t1 t2", "y": "t3 t4", "z": "t5 t6"}, 1,
     "7 = 3 + 2 + 2: the first gets the one that is left over"),
    ("range", {"x": "tu", "y": "tu"}, {"t": 3, "u": 3}, {}, {"x": "t0 t1 u0 u1", "y": "t2 u2"}, 1,
     "each topic for itself: the first gets what is left over of both"),
    ("range", {"x": "abc", "y": "abc"}, {"a": 1, "b": 1, "c": 1}, {}, {"x": "a0 b0 c0", "y": ""}, 1,
     "many small topics: all to the first, the second is idle"),
    ("range", {"x": "t", "y": "tu"}, {"t": 2, "u": 2}, {}, {"x": "t0", "y": "t1 u0 u1"}, 1,
     "only subscribers count"),
    ("range", {"y": "t", "x": "t"}, {"t": 1}, {"y": "t0"}, {"x": "t0", "y": ""}, 1,
     "the order is by member id, whoever had it"),
    ("roundrobin", {"x": "tu", "y": "tu"}, {"t": 3, "u": 3}, {}, {"x": "t0 t2 u1", "y": "t1 u0 u2"}, 1,
     "dealt out over all topics: three each"),
    ("roundrobin", {"x": "a", "y": "ab", "z": "abc"}, {"a": 1, "b": 2, "c": 3}, {},
     {"x": "a0", "y": "b0", "z": "b1 c0 c1 c2"}, 1, "who does not subscribe is passed over, and the rest is uneven"),
    ("sticky", {"x": "a", "y": "ab", "z": "abc"}, {"a": 1, "b": 2, "c": 3}, {},
     {"x": "a0", "y": "b0 b1", "z": "c0 c1 c2"}, 1, "the same group: evenly as far as subscriptions go"),
    ("sticky", {"x": "t", "y": "t"}, {"t": 4}, {"x": "t0 t1 t2 t3"}, {"x": "t0 t1", "y": "t2 t3"}, 1,
     "y is new: x keeps the first two"),
    ("sticky", {"x": "t", "y": "t"}, {"t": 5}, {"x": "t4 t3", "y": "t0"}, {"x": "t2 t3 t4", "y": "t0 t1"}, 1,
     "nothing moves; y is below two and gets t1, then x is the first of two with two each"),
    ("sticky", {"x": "t", "y": "t"}, {"t": 2}, {"x": "t1", "y": "t0"}, {"x": "t1", "y": "t0"}, 1,
     "even as it is: nothing moves"),
    ("cooperative-sticky", {"x": "t", "y": "t"}, {"t": 4}, {"x": "t0 t1 t2 t3"}, {"x": "t0 t1", "y": "t2 t3"}, 2,
     "x gives up two in the first rebalance, y gets them in the second"),
    ("cooperative-sticky", {"x": "t", "y": "t"}, {"t": 4}, {"x": "t0 t1"}, {"x": "t0 t1", "y": "t2 t3"}, 1,
     "nobody gives anything up: one rebalance"),
    ("cooperative-sticky", {"x": "t", "y": "t", "z": "t"}, {"t": 2}, {"x": "t0", "y": "t1"},
     {"x": "t0", "y": "t1", "z": ""}, 1, "fewer partitions than members: the third stays idle"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "subscriptions", "counts", "owned", "expected", "rebalances", "why"), TABLE)
def test_by_hand(
    name: str,
    subscriptions: dict[str, str],
    counts: dict[str, int],
    owned: dict[str, str],
    expected: dict[str, str],
    rebalances: int,
    why: str,
) -> None:
    outcome = ASSIGNORS[name](group(subscriptions, owned), counts)
    assert shown(outcome.assignment) == expected, why
    assert outcome.rebalances == rebalances, why


class TestOrders:
    def test_static_members_come_first_and_by_instance_id(self) -> None:
        members = [
            Member("a", frozenset()),
            Member("y", frozenset(), static_instance_id="2"),
            Member("z", frozenset(), static_instance_id="1"),
        ]
        assert [member.member_id for member in in_order(members)] == ["z", "y", "a"]

    def test_a_static_member_keeps_its_range_whatever_its_member_id(self) -> None:
        for first, second in (("a", "b"), ("b", "a")):
            members = [
                Member(first, frozenset("t"), static_instance_id="1"),
                Member(second, frozenset("t"), static_instance_id="2"),
            ]
            assert shown(ASSIGNORS["range"](members, {"t": 2}).assignment) == {first: "t0", second: "t1"}

    def test_text_sorts_as_in_java(self) -> None:
        # U+1D4B3 is written with two units below U+FFEE.
        assert sorted(["\uffee", "𝒳"], key=string_key) == ["𝒳", "\uffee"]
        assert sorted(["\uffee", "𝒳"]) == ["\uffee", "𝒳"]

    @pytest.mark.parametrize(("text", "value"), [("", 0), ("a", 97), ("Aa", 2112), ("BB", 2112), ("hello", 99162322)])
    def test_text_hashes_as_in_java(self, text: str, value: int) -> None:
        assert string_hash(text) == value

    def test_a_table_is_walked_by_bucket_then_by_insertion(self) -> None:
        # a is 97 = 6·16 + 1 and q is 113 = 7·16 + 1: one bucket of 16, two buckets of 32.
        assert list(JavaHashSet(string_hash, "qab")) == ["q", "a", "b"]
        assert list(JavaHashSet(string_hash, "qabcdefghijkl"))[:2] == ["a", "b"]

    def test_a_table_never_shrinks(self) -> None:
        table = JavaHashSet(string_hash, "qabcdefghijkl")
        for key in "bcdefghijkl":
            table.remove(key)
        assert list(table) == ["a", "q"]

    def test_names_that_share_a_hash_are_not_resolved(self) -> None:
        same = ["".join(parts) for parts in _pairs(4)]
        assert len({string_hash(name) for name in same}) == 1
        members = [Member(name, frozenset("t"), generation=1) for name in same]
        with pytest.raises(NotDeterminedError):
            ASSIGNORS["sticky"](members, {"t": 20})
        assert len(ASSIGNORS["range"](members, {"t": 20}).assignment) == len(same)


def _pairs(length: int) -> list[list[str]]:
    return [[]] if not length else [[pair, *rest] for pair in ("Aa", "BB") for rest in _pairs(length - 1)]


class TestNotDetermined:
    def test_a_partition_that_is_owned_and_does_not_exist(self) -> None:
        members = group({"x": "t", "y": "t"}, {"x": "t5"})
        with pytest.raises(NotDeterminedError, match="t-5"):
            ASSIGNORS["sticky"](members, {"t": 5})
        assert shown(ASSIGNORS["sticky"](members, {"t": 6}).assignment)["x"] == "t0 t2 t5"

    def test_a_topic_that_does_not_exist_is_nobodys(self) -> None:
        for name, assignor in ASSIGNORS.items():
            found = assignor(group({"x": "tu", "y": "tu"}, {"x": "u3"}), {"t": 2})
            assert sorted(map(len, found.assignment.values())) == [1, 1], name

    def test_a_group_without_members_gets_nothing(self) -> None:
        for assignor in ASSIGNORS.values():
            assert assignor([], {"t": 3}).assignment == {}


def test_what_only_goes_away_does_not_move() -> None:
    members = group({"x": "tu", "y": "tu"}, {"x": "t0 t1 u0", "y": ""})
    assert moved(members, {"x": frozenset({("t", 0)}), "y": frozenset({("t", 1)})}) == 1


names = st.text("abxyz-019", min_size=1, max_size=6)


@st.composite
def groups(draw: st.DrawFn, equal: bool | None = None) -> tuple[list[Member], dict[str, int]]:
    counts = draw(st.dictionaries(st.sampled_from("tuvw"), st.integers(1, 12), min_size=1))
    ids = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    everything = frozenset(counts)
    same = draw(st.booleans()) if equal is None else equal
    some = st.sets(st.sampled_from(sorted(counts)), min_size=1)
    topics = {name: everything if same else frozenset(draw(some)) for name in ids}
    owned: dict[str, set[Partition]] = {name: set() for name in ids}
    for topic, count in counts.items():
        able = [name for name in ids if topic in topics[name]]
        for number in range(count):
            if able and draw(st.booleans()):
                owned[draw(st.sampled_from(able))].add((topic, number))
    statics = draw(st.sets(st.sampled_from(ids)))
    return [
        Member(name, topics[name], frozenset(owned[name]), f"i{name}" if name in statics else None, 1) for name in ids
    ], counts


@given(groups())
def test_every_partition_has_one_owner_and_that_one_subscribes(case: tuple[list[Member], dict[str, int]]) -> None:
    members, counts = case
    topics = {member.member_id: member.topics for member in members}
    wanted = {(t, p) for t, count in counts.items() if any(t in m.topics for m in members) for p in range(count)}
    for name, assignor in ASSIGNORS.items():
        assignment = assignor(members, counts).assignment
        assert assignment.keys() == topics.keys()
        assert sum(map(len, assignment.values())) == len(wanted), name
        assert owners(assignment).keys() == wanted, name
        assert all(topic in topics[member] for (topic, _), member in owners(assignment).items()), name


@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case: tuple[list[Member], dict[str, int]], chance: random.Random) -> None:
    members, counts = case
    shuffled, topics = list(members), list(counts)
    chance.shuffle(shuffled)
    chance.shuffle(topics)
    for name, assignor in ASSIGNORS.items():
        assert assignor(shuffled, {t: counts[t] for t in topics}) == assignor(members, counts), name


@given(groups())
def test_topics_may_be_renamed_if_their_order_stays(case: tuple[list[Member], dict[str, int]]) -> None:
    members, counts = case
    renamed = [
        Member(
            m.member_id,
            frozenset(f"new-{t}" for t in m.topics),
            frozenset((f"new-{t}", p) for t, p in m.owned),
            m.static_instance_id,
            m.generation,
        )
        for m in members
    ]
    for name in ("range", "roundrobin"):
        before = ASSIGNORS[name](members, counts).assignment
        after = ASSIGNORS[name](renamed, {f"new-{t}": count for t, count in counts.items()}).assignment
        assert after == {m: frozenset((f"new-{t}", p) for t, p in owned) for m, owned in before.items()}, name


@given(groups(equal=True))
def test_sticky_is_even_and_moves_no_more_than_it_must(case: tuple[list[Member], dict[str, int]]) -> None:
    members, counts = case
    low, more = divmod(sum(counts.values()), len(members))
    # So many may keep one more than the low quota; those who have most are the ones it is worth for.
    excess = sorted((len(m.owned) - low for m in members if len(m.owned) > low), reverse=True)
    least = sum(excess) - min(more, len(excess))
    for name in ("sticky", "cooperative-sticky"):
        outcome = ASSIGNORS[name](members, counts)
        sizes = sorted(map(len, outcome.assignment.values()))
        assert sizes == [low] * (len(members) - more) + [low + 1] * more, name
        assert moved(members, outcome.assignment) == least, name
        again = [Member(m.member_id, m.topics, outcome.assignment[m.member_id], generation=2) for m in members]
        assert moved(again, ASSIGNORS[name](again, counts).assignment) == 0, name

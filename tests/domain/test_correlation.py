"""What groups that got worse together share: planted causes are named, coincidences seldom are."""

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from lagwise.domain import correlation
from lagwise.domain.correlation import (
    HIGHEST_CHANCE,
    Correlation,
    GroupKey,
    GroupTraits,
    SharedThing,
    ThingKind,
    chance_of,
    find_shared,
)
from lagwise.domain.correlation_text import correlation_sentence

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
Fleet = dict[GroupKey, GroupTraits]


def thing(kind: str, name: str, cluster: str | None = None) -> SharedThing:
    return SharedThing(ThingKind(kind), name, cluster)


def fleet_of(random_: random.Random, size: int) -> Fleet:
    """Groups like real ones: few topics are read by many, hosts are shared, some owners name a downstream."""
    fleet = {}
    for n in range(size):
        cluster = "a" if random_.random() < 0.8 else "b"
        topics = {f"t{int(random_.paretovariate(0.8)) % 80}" for _ in range(random_.randint(1, 4))}
        things = {thing("cluster", cluster, cluster), *(thing("topic", topic, cluster) for topic in topics)}
        things |= {thing("broker", str(random_.randint(1, 6)), cluster) for _ in range(random_.randint(1, 3))}
        things |= {thing("host", f"h{random_.randint(1, size // 8)}") for _ in range(random_.randint(1, 4))}
        things.add(thing("client_id", random_.choice(("rdkafka", "sarama", f"consumer-{n}"))))
        if random_.random() < 0.3:
            things.add(thing("downstream", f"db{random_.randint(1, 5)}"))
        fleet[cluster, f"g{n}"] = GroupTraits(frozenset(things))
    return fleet


def split(fleet: Fleet, troubled: Iterable[GroupKey]) -> tuple[Fleet, Fleet]:
    worse = set(troubled)
    return {k: v for k, v in fleet.items() if k in worse}, {k: v for k, v in fleet.items() if k not in worse}


def find(fleet: Fleet, troubled: Iterable[GroupKey], minimum: int = 3) -> Correlation | None:
    return find_shared(*split(fleet, troubled), minimum)


@pytest.mark.parametrize(("total", "marked", "drawn"), [(11, 3, 3), (40, 12, 7), (9, 9, 4), (300, 20, 18)])
def test_the_chance_is_that_of_counting_all_draws(total: int, marked: int, drawn: int) -> None:
    for hits in range(drawn + 2):
        ways = sum(math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in range(hits, drawn + 1))
        assert chance_of(hits, drawn, marked, total) == pytest.approx(ways / math.comb(total, drawn), abs=1e-12)


def test_the_chance_of_a_small_fleet_is_that_of_every_draw_tried() -> None:
    draws = list(combinations(range(8), 3))
    for hits in range(4):
        tried = sum(sum(one < 4 for one in draw) >= hits for draw in draws) / len(draws)
        assert chance_of(hits, 3, 4, 8) == pytest.approx(tried)


@pytest.mark.parametrize(("size", "worse"), [(12, 3), (12, 5), (60, 3), (60, 5), (60, 9), (200, 3), (200, 9)])
def test_independent_troubles_are_seldom_called_shared(size: int, worse: int) -> None:
    """The documented rate is 1 % of such coincidences, each of which is itself rare."""
    random_ = random.Random(size * 100 + worse)
    named = 0
    for _ in range(40):
        fleet = fleet_of(random_, size)
        named += sum(find(fleet, random_.sample(sorted(fleet), worse)) is not None for _ in range(10))
    # Where the rate is 1 %, as many of 400 or more come with a probability of 0.3 %.
    assert named <= 10, f"{named} of 400"
    assert HIGHEST_CHANCE == 0.01


@pytest.mark.parametrize("kind", ["topic", "broker", "host", "client_id", "downstream"])
@pytest.mark.parametrize("seed", range(10))
def test_a_planted_cause_is_named(kind: str, seed: int) -> None:
    random_ = random.Random(seed)
    fleet = fleet_of(random_, 200)
    cause = thing(kind, "planted", "a" if kind in ("topic", "broker") else None)
    in_a = [key for key in sorted(fleet) if key[0] == "a"]
    having = random_.sample(in_a, 22)
    for key in having:
        fleet[key] = GroupTraits(fleet[key].things | {cause})
    found = find(fleet, having[:20])
    assert found is not None
    assert found.things == (cause,)
    assert found.groups == set(having[:20])


def test_a_group_in_trouble_by_itself_at_that_time_changes_nothing_and_is_no_member() -> None:
    random_ = random.Random(1)
    fleet = fleet_of(random_, 200)
    cause = thing("host", "planted")
    having = random_.sample(sorted(fleet), 12)
    for key in having:
        fleet[key] = GroupTraits(fleet[key].things | {cause})
    other = next(key for key in sorted(fleet) if key not in having)
    found = find(fleet, [*having, other])
    assert found is not None
    assert found.things == (cause,)
    assert found.groups == set(having)


@pytest.mark.parametrize("seed", range(20))
def test_the_correction_is_that_of_the_plain_definition(seed: int) -> None:
    random_ = random.Random(seed)
    sizes = [random_.randint(3, 60) for _ in range(random_.randint(0, 80))]
    drawn, total = random_.randint(3, 20), 80
    least = [chance_of(min(size, drawn), drawn, size, total) for size in sizes]
    plain_ = [k for k in range(1, len(least)) if sum(one <= HIGHEST_CHANCE / k for one in least) <= k]
    assert correlation._number_of_tests(sizes, drawn, total) == (plain_[0] if plain_ else max(1, len(least)))


def test_the_correction_of_many_candidates_looks_at_each_but_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: a large fleet has 10,000 candidates, and a round waits for this."""
    counted = Counter[str]()

    def search(least: list[float], chance: float) -> int:
        counted["searches"] += 1
        return bisect_right(least, chance)

    monkeypatch.setattr(correlation, "bisect_right", search)
    sizes = [3 + n % 7 for n in range(10_000)]
    assert correlation._number_of_tests(sizes, 5, 10_000) == 10_000
    assert counted["searches"] <= 10_000


def plain(names: str, *things: SharedThing, cluster: str = "a") -> Fleet:
    return {(cluster, name): GroupTraits(frozenset({*things, thing("cluster", cluster, cluster)})) for name in names}


CLICKS, BILLS = thing("topic", "clicks", "a"), thing("topic", "bills", "a")


def test_the_narrower_of_two_explanations_is_named() -> None:
    """All that read clicks are on broker 3, as are others that are well."""
    broker = thing("broker", "3", "a")
    fleet = plain("abcdef", CLICKS, broker) | plain("ghij", broker) | plain("klmnopqrstuvwxyzABCDEFGH")
    found = find(fleet, [("a", name) for name in "abcdef"])
    assert found is not None
    assert found.things == (CLICKS,)


def test_equally_good_explanations_are_all_named_the_likelier_cause_first() -> None:
    host = thing("host", "10.0.0.7")
    fleet = plain("abcdef", CLICKS, host) | plain("klmnopqrstuvwxyzABCDEFGH", BILLS)
    found = find(fleet, [("a", name) for name in "abcdef"])
    assert found is not None
    assert found.things == (host, CLICKS)


@pytest.mark.parametrize(
    ("worse", "having", "well", "expected", "why"),
    [
        ("ab", "ab", "klmnopqrstuvwxyz", False, "two groups are too few, whatever they share"),
        ("abc", "abc", "klmnopqrstuvwxyz", True, "three of three readers among nineteen groups: one draw in 969"),
        ("abc", "abc", "klmno", False, "three of three readers among eight groups: one draw in 56"),
        ("abcd", "ab", "klmnopqrstuvwxyz", False, "half of the groups in trouble lack it"),
        ("abcdef", "abcdefklmnopqrst", "klmnopqrstuvwxyz", False, "most groups that are well have it, too"),
    ],
)
def test_how_much_evidence_is_needed(worse: str, having: str, well: str, expected: bool, why: str) -> None:
    fleet = plain(worse + well) | plain(having, CLICKS)
    found = find(fleet, [("a", name) for name in worse])
    assert (found is not None) is expected, why


def test_where_nearly_all_groups_of_a_cluster_got_worse_it_is_the_cluster() -> None:
    fleet = plain("abcdefgh", CLICKS) | plain("ij", BILLS)
    found = find(fleet, [("a", name) for name in "abcdefghi"])
    assert found is not None
    assert found.things == (thing("cluster", "a", "a"),)
    assert len(found.groups) == 9


@pytest.mark.parametrize("size", [3, 4, 5, 6, 10, 11, 20, 50])
def test_a_whole_cluster_seldom_gets_worse_by_chance(size: int) -> None:
    """If each group gets worse by itself every 20 minutes, others seldom do so in the two minutes before one."""
    fleet = {("a", f"g{n}"): GroupTraits(frozenset({thing("cluster", "a", "a")})) for n in range(size)}
    groups = list(fleet.items())
    enough = min(
        worse
        for worse in range(1, size + 1)
        if find_shared(dict(groups[:worse]), dict(groups[worse:]), minimum_groups=3) is not None
    )
    others, each = size - 1, 2 / 20
    chance = sum(math.comb(others, k) * each**k * (1 - each) ** (others - k) for k in range(enough - 1, size))
    assert chance <= HIGHEST_CHANCE * (1 + 1e-9)


def test_all_groups_of_a_cluster_count_also_those_that_are_not_well() -> None:
    fleet = plain("abcdefgh")
    troubled, _ = split(fleet, fleet)
    unknown = [("a", name) for name in "klm"]
    assert find_shared(troubled, {}, 3, [*fleet, *unknown[:2]]) is not None, "8 of 10"
    assert find_shared(troubled, {}, 3, [*fleet, *unknown]) is None, "8 of 11"


def test_one_cluster_of_two_is_named_even_where_some_of_its_groups_are_well() -> None:
    fleet = plain("abcdefghij", CLICKS) | plain("abcdefghijklmnopqrst", BILLS, cluster="b")
    found = find(fleet, [("a", name) for name in "abcdefgh"])
    assert found is not None
    assert found.things == (CLICKS,), "all groups of the cluster read clicks: the topic says more"
    without = plain("abcdefghij") | plain("abcdefghijklmnopqrst", cluster="b")
    found = find(without, [("a", name) for name in "abcdefgh"])
    assert found is not None
    assert found.things == (thing("cluster", "a", "a"),)


@pytest.mark.parametrize(("groups", "expected"), [(5, "cluster"), (6, "broker")])
def test_where_all_got_worse_on_the_partitions_of_one_broker_it_is_the_broker(groups: int, expected: str) -> None:
    """Three brokers: six groups agree on one by chance in one of 243 cases, five in one of 81."""
    broker = thing("broker", "3", "a")
    found = find_shared({("a", str(n)): on_broker(broker) for n in range(groups)}, {}, 3)
    assert found is not None
    assert found.things[0].kind == expected


def on_broker(broker: SharedThing, share: float = 1 / 3) -> GroupTraits:
    """Of a group that is in trouble just on its partitions of a broker, one of several that lead the others."""
    return GroupTraits(frozenset({broker, thing("cluster", "a", "a")}), broker, share)


@pytest.mark.parametrize(
    ("agree", "differ", "share", "expected", "why"),
    [
        (6, 0, 1 / 3, True, "one in 243, though as many groups are well on all brokers"),
        (5, 0, 1 / 3, False, "one in 81"),
        (8, 2, 1 / 3, False, "45 ways to choose 8 of 10, and one in 2187 for each"),
        (12, 2, 1 / 3, True, "91 ways, and one in 177,147 for each"),
        (12, 2, 2 / 3, False, "the broker leads two thirds of the partitions anyhow"),
        (6, 3, 1 / 9, False, "a third of the groups has trouble elsewhere, too"),
    ],
)
def test_a_broker_is_found_among_groups_that_use_all_brokers(
    agree: int, differ: int, share: float, expected: bool, why: str
) -> None:
    brokers = [thing("broker", str(n), "a") for n in range(1, 4)]
    worse = {("a", f"worse{n}"): on_broker(brokers[2], share) for n in range(agree)}
    worse |= {("a", f"other{n}"): GroupTraits(frozenset(brokers)) for n in range(differ)}
    well = {("a", f"well{n}"): GroupTraits(frozenset(brokers)) for n in range(30)}
    found = find_shared(worse, well, 3)
    assert (found is not None and found.things == (brokers[2],)) is expected, why


def test_the_sentence_gives_the_evidence() -> None:
    worse = plain("abcdef", CLICKS) | plain("g")
    well = plain("klmnopqrstuvwxyz") | plain("z", CLICKS)
    began = {key: START + timedelta(seconds=5 * n) for n, key in enumerate(sorted(worse))}
    assert correlation_sentence((CLICKS,), began, well, worse) == (
        "7 groups got worse within 30 s. 6 of them read topic clicks; of the 16 groups that are well, 1 does. "
        "Groups: a, b, c, d, e and 2 more."
    )
    at_once = dict.fromkeys(plain("abc"), START)
    host = thing("host", "10.0.0.7")
    assert correlation_sentence((host,), at_once, {}, plain("abc", host)) == (
        "3 groups got worse at the same time. All 3 have members on host 10.0.0.7; no other group is known to be well. "
        "Groups: a, b, c."
    )
    broker = thing("broker", "3", "a")
    on_it = {("a", name): on_broker(broker) for name in "abc"}
    for others, said in (
        (plain("mn", broker) | plain("o"), "it leads partitions of 2 of the 3 groups that are well."),
        (plain("mno"), "it leads partitions of none of the 3 groups that are well."),
        (plain("m", broker), "it leads some of the partitions of the only group that is well."),
        ({}, "no other group is known to be well."),
    ):
        assert correlation_sentence((broker,), at_once, others, on_it).startswith(
            "3 groups got worse at the same time. All 3 have trouble on partitions that broker 3 leads, "
            f"3 of them on no others; {said} Groups: a, b, c."
        )
    assert "; the only group that is well does not." in correlation_sentence((host,), at_once, plain("z"), plain("abc"))

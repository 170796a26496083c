"""Our assignors are Kafka's: the same groups, the same assignments, member by member and partition by partition."""

import random
from collections import Counter

import pytest

from lagwise.platform.errors import MissingRequirement
from lagwise.platform.java import find_java
from tests.contract.assignors import Group, java_outcomes, made_up_group, our_outcomes

pytestmark = [pytest.mark.broker, pytest.mark.process]


@pytest.fixture(scope="module", autouse=True)
def java() -> None:
    try:
        find_java()
    except MissingRequirement as missing:
        pytest.skip(f"no assignors of Kafka without Java: {missing}")


def compare(groups: list[Group]) -> Counter[str]:
    """Assert that every outcome is the same; how many groups of which kind there were."""
    kinds: Counter[str] = Counter()
    answers = java_outcomes(groups)
    assert len(answers) == len(groups)
    for (members, counts), kafkas in zip(groups, answers, strict=True):
        ours = our_outcomes(members, counts)
        for name, kafka in kafkas.items():
            assert ours[name] == kafka, (name, members, counts)
        equal = len({member.topics for member in members}) == 1
        kinds["equal subscriptions" if equal else "different subscriptions"] += 1
        kinds["fewer partitions than members"] += sum(counts.values()) < len(members)
        kinds["static members"] += any(member.static_instance_id for member in members)
        kinds["some static, some not"] += len({member.static_instance_id is None for member in members}) == 2
        claims = [partition for member in members for partition in member.owned]
        kinds["owned before"] += bool(claims)
        kinds["claimed twice"] += len(claims) > len(set(claims))
        kinds["several generations"] += len({member.generation for member in members}) > 1
        cooperative = kafkas["cooperative-sticky"]
        kinds["handed over"] += cooperative is not None and cooperative[0] > 1
        kinds["Kafka fails"] += cooperative is None
    return kinds


def test_two_thousand_groups() -> None:
    chance = random.Random(20240)
    kinds = compare([made_up_group(chance) for _ in range(2000)])
    for kind in ("equal subscriptions", "different subscriptions", "fewer partitions than members", "static members"):
        assert kinds[kind] > 150, kinds
    for kind in ("some static, some not", "owned before", "claimed twice", "several generations", "handed over"):
        assert kinds[kind] > 150, kinds


@pytest.mark.long
def test_tens_of_thousands_of_groups() -> None:
    chance = random.Random(848)
    kinds = compare([made_up_group(chance) for _ in range(30_000)])
    assert 0 < kinds["Kafka fails"] < 300, kinds

"""Kafka's real Java assignors beside ours: made-up groups, and one JVM that answers for all of them."""

import importlib.util
import json
import random
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lagwise.domain.assignment.assignors import ASSIGNORS
from lagwise.domain.assignment.model import Member, NotDeterminedError, Partition
from lagwise.platform.java import find_java
from lagwise_sandbox.jars import broker_classpath

PROGRAM = Path(__file__).with_name("Assignors.java")
Group = tuple[list[Member], dict[str, int]]


def java_outcomes(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """What the Java assignors give for each group, by assignor; None where one fails."""
    command = [
        str(find_java()), "-Xmx512m", "-Dlog4j2.level=OFF", "-cp", ":".join([broker_classpath(), *_compiler()]),
        "org.codehaus.janino.SimpleCompiler", str(PROGRAM), "Assignors",
    ]  # fmt: skip
    lines = "".join(json.dumps(_as_document(*group)) + "\n" for group in groups)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr[:2000]
    return [{name: _outcome(found) for name, found in json.loads(line).items()} for line in ran.stdout.splitlines()]


def _compiler() -> list[str]:
    """The jars of the Java compiler that Spark brings along."""
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None and pyspark.origin is not None
    jars = Path(pyspark.origin).parent / "jars"
    return [str(jar) for name in ("janino-*.jar", "commons-compiler-*.jar") for jar in jars.glob(name)]


def our_outcomes(members: list[Member], counts: dict[str, int]) -> dict[str, Any]:
    """The same from our assignors; None where they do not tell."""
    found: dict[str, Any] = {}
    for name, assignor in ASSIGNORS.items():
        try:
            outcome = assignor(members, counts)
            found[name] = outcome.rebalances, dict(outcome.assignment)
        except NotDeterminedError:
            found[name] = None
    return found


def _as_document(members: list[Member], counts: dict[str, int]) -> dict[str, Any]:
    # In order of member id, as our order within a bucket of a Java HashMap has it.
    ordered = sorted(members, key=lambda m: m.member_id.encode("utf-16-be"))
    return {
        "partitions": counts,
        "members": [
            {
                "id": m.member_id,
                "instance": m.static_instance_id,
                "topics": sorted(m.topics),
                "owned": sorted(m.owned),
                "generation": m.generation,
            }
            for m in ordered
        ],
    }


def _outcome(found: dict[str, Any] | None) -> Any:
    if found is None:
        return None
    assignment: dict[str, list[list[Any]]] = found["assignment"]
    given = {member: frozenset((t, p) for t, p in partitions) for member, partitions in assignment.items()}
    assert sum(map(len, assignment.values())) == sum(map(len, given.values()))
    return found["rebalances"], given


def made_up_group(chance: random.Random) -> Group:
    """A group that may be plain or odd: static members, different subscriptions, earlier owners, even conflicting."""
    names = ("orders", "t", "payments.v2", "ü-€", "𝒳", "\uffee")
    topics = [f"{chance.choice(names)}{number}" for number in range(chance.randint(1, 5))]
    counts = {topic: chance.choice((0, 1, 2, 3, 3, 6, 7, 12, 20)) for topic in topics if chance.random() < 0.95}
    equal = chance.random() < 0.4
    ids = _member_ids(chance, chance.choice((1, 2, 3, 4, 5, 8, 13, 30)))
    statics = chance.choice((0.0, 0.0, 0.5, 1.0))
    members = []
    for number, member_id in enumerate(ids):
        subscribed = topics if equal else chance.sample(topics, chance.randint(1, len(topics)))
        instance = f"i-{chance.randint(0, 999)}-{number}" if chance.random() < statics else None
        members.append(Member(member_id, frozenset(subscribed), static_instance_id=instance))
    return _with_earlier_owners(chance, members, counts), counts


def _member_ids(chance: random.Random, number: int) -> list[str]:
    """As clients make them: the client id and a UUID."""
    clients = chance.choice((["app"], ["app-1", "app-2", "b"], ["kunde-ü", "𝒳", "\uffee"]))
    return [f"{chance.choice(clients)}-{chance.getrandbits(128):032x}" for _ in range(number)]


def _with_earlier_owners(chance: random.Random, members: list[Member], counts: dict[str, int]) -> list[Member]:
    kind = chance.choice(("nothing", "settled", "one left", "lopsided", "old generations", "conflicts"))
    if kind == "nothing":
        return members
    owned: dict[str, set[Partition]] = {m.member_id: set() for m in members}
    owners = members[: max(1, len(members) // 3)] if kind == "lopsided" else members
    for topic, count in counts.items():
        for number in range(count):
            if kind == "one left" and chance.random() < 0.3:
                continue
            claimants = 2 if kind == "conflicts" and chance.random() < 0.3 else 1
            # Some own what they no longer subscribe to.
            able = owners if chance.random() < 0.05 else [m for m in owners if topic in m.topics]
            for member in chance.sample(able, min(claimants, len(able))):
                owned[member.member_id].add((topic, number))
    generations: tuple[int | None, ...] = (4,)
    if kind in ("old generations", "conflicts"):
        generations = chance.choice(((4, 4, 4, 3), (5, 4, 4, 3, 2), (4, 4, None)))
    return [replace(m, owned=frozenset(owned[m.member_id]), generation=chance.choice(generations)) for m in members]

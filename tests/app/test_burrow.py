"""Burrow's read API over real HTTP: its words and its format, by the structures that its clients decode."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import BaseModel, ConfigDict, Field

from lagwise.config import Config
from lagwise.domain.vocabulary import Status
from lagwise.tables.store import Lake
from lagwise_app.server.burrow import _WORDS, _by_topic
from lagwise_app.server.refusal import Refusal
from lagwise_app.terminal import lake_queries
from tests.app.test_serve import Served, serving
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, Story
from tests.docs.test_words import BURROW_WORDS

pytestmark = pytest.mark.thorough

STRANGE = "a/b c"
STORIES = (*GROUPS_OF_THE_DEMO, Story(STRANGE, Status.LAGGING, "flat", "It lags.", topic="t/u", lag=7))
#: A group of each status; and the group that the limited token may see.
BY_STATUS = {story.status: story for story in reversed(STORIES)}
OWN = BY_STATUS[Status.STOPPED]


class Strict(BaseModel):
    """As a client in a typed language decodes it: these keys, and these types."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Offset(Strict):
    offset: int
    timestamp: int
    lag: int | None


class PartitionStatus(Strict):
    topic: str
    partition: int
    owner: str
    client_id: str
    status: str
    start: Offset | None
    end: Offset | None
    current_lag: int = Field(ge=0)
    complete: float


class GroupStatus(Strict):
    cluster: str
    group: str
    status: str
    complete: float
    partitions: list[PartitionStatus]
    partition_count: int
    maxlag: PartitionStatus | None
    totallag: int


class ConsumerPartition(Strict):
    offsets: list[Offset]
    owner: str
    client_id: str
    current_lag: int = Field(alias="current-lag")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("burrow")
    write_to(folder, Scene(datetime.now(UTC), stories=STORIES, hours=0.1))
    return folder


@pytest.fixture(scope="module")
def served(data: Path) -> Iterator[Served]:
    tokens = [
        {"name": "all", "token": "${env:BURROW_ALL}"},
        {"name": "one", "token": "${env:BURROW_ONE}", "groups": {"include": [OWN.group]}},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURROW_ALL", "all-token")
        patch.setenv("BURROW_ONE", "one-token")
        with serving(data, "all-token", tokens=tokens, metrics={"stale_after_seconds": 3600}) as found:
            yield found


def get(served: Served, path: str, who: str = "all") -> tuple[int, dict[str, Any]]:
    status, headers, body = served.get(path, Authorization=f"Bearer {who}-token")
    assert headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(body)
    assert found.pop("request")["url"] == path
    return status, found


def answer(served: Served, path: str, message: str, who: str = "all") -> dict[str, Any]:
    status, found = get(served, path, who)
    assert (status, found.pop("error"), found.pop("message")) == (200, False, message)
    return found


def status_of(served: Served, story: Story, kind: str = "lag") -> GroupStatus:
    path = f"/v3/kafka/{story.cluster}/consumer/{quote(story.group, safe='')}/{kind}"
    return GroupStatus.model_validate(answer(served, path, "consumer status returned")["status"])


def rows(data: Path, story: Story) -> list[dict[str, Any]]:
    return lake_queries.partitions(Lake(Config(data=str(data)).lake_uri), story.group, story.cluster)


def test_clusters_consumers_and_topics(served: Served) -> None:
    clusters = sorted({story.cluster for story in STORIES})
    assert answer(served, "/v3/kafka", "cluster list returned") == {"clusters": clusters}
    consumers = answer(served, "/v3/kafka/prod/consumer", "consumer list returned")["consumers"]
    assert consumers == sorted(story.group for story in STORIES if story.cluster == "prod")
    topics = answer(served, "/v3/kafka/prod/topic", "topic list returned")["topics"]
    assert {"t/u", OWN.topic} <= set(topics)
    module = answer(served, "/v3/kafka/prod", "cluster module detail returned")["module"]
    assert module["class-name"] == "kafka"


def test_a_topic_with_its_offsets_and_consumers(served: Served, data: Path) -> None:
    path = f"/v3/kafka/prod/topic/{OWN.topic}"
    offsets = answer(served, path, "topic offsets returned")["offsets"]
    assert offsets == [row["high_watermark"] for row in rows(data, OWN)]
    assert OWN.group in answer(served, f"{path}/consumers", "consumers of topic returned")["consumers"]
    strange = answer(served, "/v3/kafka/prod/topic/t%2Fu/consumers", "consumers of topic returned")
    assert strange == {"consumers": [STRANGE]}


@pytest.mark.parametrize("status", BY_STATUS)
def test_the_status_of_a_group_is_the_documented_word(served: Served, status: Status) -> None:
    """Of a group Burrow knows no more than ERR."""
    word = BURROW_WORDS[status]
    assert status_of(served, BY_STATUS[status]).status == ("ERR" if word in ("STOP", "STALL", "REWIND") else word)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.group)
def test_all_partitions_with_their_numbers(served: Served, data: Path, story: Story) -> None:
    found, expected = status_of(served, story), [row for row in rows(data, story) if row["status"] != Status.GHOST]
    assert [(p.topic, p.partition) for p in found.partitions] == [(r["topic"], r["partition"]) for r in expected]
    assert [p.status for p in found.partitions] == [BURROW_WORDS[Status(r["status"])] for r in expected]
    assert [p.current_lag for p in found.partitions] == [r["lag"] or 0 for r in expected]
    assert [p.end and p.end.offset for p in found.partitions] == [r["committed"] for r in expected]
    assert found.partition_count == len(expected)
    judged = lake_queries.group(Lake(Config(data=str(data)).lake_uri), story.group, story.cluster)
    assert found.totallag == (judged["lag"] or 0)
    known = [r for r in expected if r["status"] != Status.UNKNOWN]
    assert found.complete == pytest.approx(len(known) / len(expected) if expected else 0.0)
    if expected:
        assert found.maxlag is not None
        assert found.maxlag.current_lag == max(r["lag"] or 0 for r in expected)


def test_the_short_status_has_only_partitions_that_are_not_ok(served: Served) -> None:
    full, short = status_of(served, OWN), status_of(served, OWN, "status")
    assert short.partitions == [p for p in full.partitions if p.status != "OK"]
    assert short.partitions
    assert short.model_copy(update={"partitions": full.partitions}) == full


def test_a_consumer_with_its_offsets(served: Served, data: Path) -> None:
    found = answer(served, f"/v3/kafka/prod/consumer/{OWN.group}", "consumer detail returned")["topics"]
    decoded = [ConsumerPartition.model_validate(one) for one in found.pop(OWN.topic)]
    assert found == {}
    assert [p.offsets[0].offset for p in decoded] == [row["committed"] for row in rows(data, OWN)]
    assert [p.current_lag for p in decoded] == [row["lag"] for row in rows(data, OWN)]


def test_times_are_milliseconds_of_the_commit(served: Served) -> None:
    end = status_of(served, OWN).partitions[0].end
    assert end is not None
    assert abs(end.timestamp / 1000 - datetime.now(UTC).timestamp()) < 86_400


def test_a_list_by_partition_has_a_bounded_number_of_places() -> None:
    """The numbers of external offsets can be anything."""
    with pytest.raises(Refusal, match="too many places"):
        _by_topic([{"topic": "queue", "partition": 2**31 - 1, "committed": None}])


def test_a_name_with_a_slash(served: Served) -> None:
    assert status_of(served, STORIES[-1]).group == STRANGE


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v3/kafka/nowhere", "cluster not found"),
        ("/v3/kafka/nowhere/consumer", "cluster not found"),
        ("/v3/kafka/nowhere/topic", "cluster not found"),
        ("/v3/kafka/prod/consumer/nobody", "cluster or consumer not found"),
        ("/v3/kafka/prod/topic/nothing", "cluster or topic not found"),
        ("/v3/kafka/prod/topic/nothing/consumers", "cluster or topic not found"),
        ("/v3/config", "Not Found"),
    ],
)
def test_what_is_not_found(served: Served, path: str, message: str) -> None:
    assert get(served, path) == (404, {"error": True, "message": message})


def test_an_unknown_group_has_burrow_s_status_for_that(served: Served) -> None:
    status, found = get(served, "/v3/kafka/prod/consumer/nobody/lag")
    decoded = GroupStatus.model_validate(found["status"])
    assert (status, decoded.status, decoded.partitions, decoded.partition_count) == (404, "NOTFOUND", [], 0)


def test_a_limited_token_sees_its_group_and_no_other(served: Served) -> None:
    other = next(story for story in STORIES if story.cluster == "prod" and story.topic != OWN.topic)
    assert answer(served, "/v3/kafka", "cluster list returned", "one") == {"clusters": [OWN.cluster]}
    listed = answer(served, "/v3/kafka/prod/consumer", "consumer list returned", "one")
    assert listed == {"consumers": [OWN.group]}
    assert answer(served, "/v3/kafka/prod/topic", "topic list returned", "one") == {"topics": [OWN.topic]}
    readers = answer(served, f"/v3/kafka/prod/topic/{OWN.topic}/consumers", "consumers of topic returned", "one")
    assert readers == {"consumers": [OWN.group]}
    for path in (
        "/v3/kafka/staging",
        "/v3/kafka/staging/consumer",
        "/v3/kafka/staging/topic",
        f"/v3/kafka/prod/topic/{other.topic}",
        f"/v3/kafka/prod/topic/{other.topic}/consumers",
        *(f"/v3/kafka/prod/consumer/{other.group}{end}" for end in ("", "/status", "/lag")),
    ):
        assert get(served, path)[0] == 200
        assert get(served, path, "one")[0] == 404
        assert get(served, path, "no")[0] == 401


def test_the_probe_needs_no_token_and_nothing_can_be_deleted(served: Served) -> None:
    assert served.get("/burrow/admin")[::2] == (200, b"GOOD")
    path = f"/v3/kafka/prod/consumer/{OWN.group}"
    assert served.get(path, "DELETE", Authorization="Bearer all-token")[0] == 405


def test_the_words_are_those_of_the_page() -> None:
    assert set(BURROW_WORDS.values()) == set(_WORDS)

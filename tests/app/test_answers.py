"""What other programs are told about groups, over a real lake, and that nobody sees more than they may."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lagwise.config import Config, NameFilter
from lagwise.config.visibility import Visibility
from lagwise.platform.errors import ConfigError
from lagwise.tables.store import Lake
from lagwise_app.answers.alerts import AlertAnswers
from lagwise_app.answers.context import Context, stale_groups
from lagwise_app.answers.groups import UnknownGroup, group, in_trouble, visible_groups
from lagwise_app.answers.partitions import UnknownTopic, clusters, high_watermarks, partitions, readers, topics
from lagwise_app.assistants.tools import groups_in_trouble
from lagwise_app.terminal import lake_queries
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO

pytestmark = pytest.mark.thorough

FIRST = GROUPS_OF_THE_DEMO[0]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("answers")
    return write_to(folder, Scene(datetime.now(UTC), stories=GROUPS_OF_THE_DEMO, hours=0.1))


def test_groups_in_trouble_come_worst_first_without_quiet_ones(lake: Lake) -> None:
    found = in_trouble(visible_groups(lake, Visibility()))
    assert found == sorted(found, key=lake_queries.worst_first)
    assert found
    assert {row["status"] for row in found}.isdisjoint({"ok", "ghost"})


def test_old_verdicts_are_counted_so_that_an_empty_list_is_no_good_news(lake: Lake) -> None:
    rows = visible_groups(lake, Visibility())
    newest = max(row["as_of"] for row in rows)
    config = Config.model_validate({"data": lake.uri})
    for seconds, stale in ((1, 0), (7_200, len(GROUPS_OF_THE_DEMO))):
        at = newest + timedelta(seconds=seconds)
        context = Context(lake, config, AlertAnswers(config), lambda at=at: at)
        assert stale_groups(context, rows) == stale
        told = groups_in_trouble(context, Visibility(), "nowhere", "", 10)
        assert (told.groups, told.stale) == ([], 0), "of clusters that were not asked about nothing is told"
        assert groups_in_trouble(context, Visibility(), None, "no such name", 10).stale == stale


def test_every_group_has_its_own_partitions(lake: Lake) -> None:
    for story in GROUPS_OF_THE_DEMO:
        expected = lake_queries.partitions(lake, story.group, story.cluster)
        found = partitions(lake, story.cluster, story.group, Visibility())
        assert [{key: row[key] for key in lake_queries.PARTITION_COLUMNS} for row in found] == expected


def test_one_group_and_its_partitions(lake: Lake) -> None:
    row = group(lake, FIRST.cluster, FIRST.group, Visibility())
    assert row["sentence"]
    assert len(partitions(lake, FIRST.cluster, FIRST.group, Visibility())) == row["partitions"]


@pytest.mark.parametrize(
    "visibility",
    [Visibility(clusters=NameFilter(include=("elsewhere",))), Visibility(groups=NameFilter(exclude=(FIRST.group,)))],
)
def test_a_hidden_group_is_like_an_unknown_one(lake: Lake, visibility: Visibility) -> None:
    assert FIRST.group not in {row["group"] for row in in_trouble(visible_groups(lake, visibility))}
    for ask in (group, partitions):
        with pytest.raises(UnknownGroup) as hidden:
            ask(lake, FIRST.cluster, FIRST.group, visibility)
        assert str(hidden.value) == f"no group {FIRST.group!r} is known in cluster {FIRST.cluster!r}"


def test_clusters_and_topics_are_those_of_visible_groups(lake: Lake) -> None:
    one = Visibility(groups=NameFilter(include=(FIRST.group,)))
    assert clusters(lake, Visibility()) == sorted({story.cluster for story in GROUPS_OF_THE_DEMO})
    assert (clusters(lake, one), topics(lake, FIRST.cluster, one)) == ([FIRST.cluster], [FIRST.topic])
    assert readers(lake, FIRST.cluster, FIRST.topic, one) == [FIRST.group]
    assert set(high_watermarks(lake, FIRST.cluster, FIRST.topic, one)) == set(range(FIRST.partitions))
    hidden = next(s for s in GROUPS_OF_THE_DEMO if s.topic != FIRST.topic)
    for ask in (readers, high_watermarks):
        with pytest.raises(UnknownTopic):
            ask(lake, hidden.cluster, hidden.topic, one)
    assert topics(lake, "staging", one) == []


def test_a_file_of_owners_is_read_when_it_changes_whether_it_can_be_used_or_not(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    right = json.dumps({"owners": [{"groups": {"include": ["payments.*"]}, "team": "payments"}], "rules": []})
    wrong = right.replace("team", "taem")
    config = Config.model_validate({"data": str(tmp_path), "alerts": {"rules_file": str(file)}})
    context = Context(Lake(config.lake_uri), config, AlertAnswers(config))

    def written(text: str, at: int) -> None:
        file.write_text(text)
        os.utime(file, (at, at))

    def said() -> str:
        with pytest.raises(ConfigError) as raised:
            context.owners()
        return f"{raised.value} [{raised.value.code}]"

    written(wrong, at=1_000)
    refusal = said()
    assert "taem" in refusal
    assert "[alert_rules_invalid]" in refusal
    written(right, at=1_000)  # which looks like the same file
    assert said() == refusal, "it is not parsed again"
    written(right, at=2_000)
    assert [owner.team for owner in context.owners()] == ["payments"]
    written(wrong, at=3_000)
    assert said() == refusal
    file.unlink()
    assert "cannot read" in said()

"""What is read from a real lake, and what it says at a moment."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lagwise.domain.findings import FindingKind
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.repair import inspect, repair
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.lake_reader import LakeReader
from lagwise_alerts.evaluate.observation import GETTING_OLDER, LakeSnapshot, observe
from lagwise_alerts.model import (
    CLUSTER_FINDINGS,
    AlertKind,
    AlertSubject,
    FreshnessCondition,
    GroupCondition,
    Situation,
)
from tests.alerts.support import CLUSTER, LakeWriter, Player, at, book

pytestmark = pytest.mark.thorough


@pytest.fixture
def reader(lake: Lake) -> Iterator[LakeReader]:
    made = LakeReader(lake)
    yield made
    made.close()


def seen(snapshot: LakeSnapshot, now: float, clusters: tuple[str, ...] = (CLUSTER,)) -> Situation:
    return observe(
        snapshot,
        clusters=clusters,
        analysis_interval_seconds=15.0,
        active=set(),
        watching_since=at(-10_000),
        now=at(now),
    )


def group(
    observation: Situation, name: str, kind: AlertKind = AlertKind.GROUP, cluster: str | None = CLUSTER
) -> GroupCondition:
    subject = AlertSubject(kind, cluster, name)
    (found,) = [c for c in observation.conditions if isinstance(c, GroupCondition) and c.subject == subject]
    return found


def fresh(observation: Situation, kind: AlertKind, cluster: str | None = CLUSTER) -> FreshnessCondition:
    (found,) = [
        c
        for c in observation.conditions
        if isinstance(c, FreshnessCondition)
        and c.subject.kind is kind
        and (kind is AlertKind.ANALYSIS or c.subject.cluster == cluster)
    ]
    return found


class TestGroups:
    def test_are_read_with_their_numbers(self, reader: LakeReader, writer: LakeWriter) -> None:
        row = {
            "status": "losing_data",
            "since": at(-60),
            "lag": 7,
            "lag_seconds": 1.5,
            "lag_seconds_is_lower_bound": True,
            "records_lost": 3,
            "seconds_to_loss": 0.0,
            "loss_cause": "deletion",
            "members": 2,
            "worst_topic": "t",
            "worst_partition": 4,
        }
        writer.all_well(at(0), {"orders": row, "odd": {"status": "unknown", "reason": "expired"}})
        now = seen(reader.read(at(5)), 5)
        orders = group(now, "orders")
        assert (orders.status, orders.since, orders.as_of) == (Status.LOSING_DATA, at(-60), at(0))
        assert (orders.numbers.lag_records, orders.numbers.records_lost, orders.numbers.members) == (7, 3, 2)
        assert orders.numbers.lag_seconds_is_lower_bound is True
        assert (orders.numbers.worst_topic, orders.numbers.worst_partition) == ("t", 4)
        assert orders.numbers.produce_rate_per_second is None
        assert group(now, "odd").reason is UnknownReason.EXPIRED

    @pytest.mark.parametrize(
        ("why", "counts", "known"),
        [
            ("unknown ones and ghosts are not", {"stalled": 1, "ok": 3, "unknown": 4, "ghost": 2}, 4),
            ("none is", {"unknown": 4}, None),
            ("there is none, as where the group cannot be read", {}, None),
        ],
    )
    def test_count_the_partitions_with_a_known_status(
        self, reader: LakeReader, writer: LakeWriter, why: str, counts: dict[str, int], known: int | None
    ) -> None:
        by_status = [{"status": status, "partitions": number} for status, number in counts.items()]
        writer.all_well(at(0), {"g": {"status": "unknown", "partitions_by_status": by_status}})
        assert group(seen(reader.read(at(5)), 5), "g").numbers.known_partitions == known, why

    def test_are_read_with_their_findings(self, reader: LakeReader, writer: LakeWriter) -> None:
        findings = [
            {"kind": "left_topics", "sentence": "It left a.", "remedy": None},
            {"kind": "left_topics", "sentence": "It left b.", "remedy": "look"},
            {"kind": "of_the_future", "sentence": "?", "remedy": None},
        ]
        writer.all_well(at(0), {"g": {"status": "ok", "since": at(-60), "findings": findings}})
        now = seen(reader.read(at(5)), 5)
        left = group(now, "g", AlertKind.LEFT_TOPICS)
        assert (left.is_found, left.sentence, left.as_of) == (True, "It left a. It left b.", at(0))
        assert not group(now, "g", AlertKind.LOSS).is_found
        assert group(now, "g").sentence == "g is ok"

    def test_every_kind_of_finding_is_one_of_alert(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(at(0), {"g": "ok"})
        kinds = {c.subject.kind for c in seen(reader.read(at(5)), 5).conditions if c.subject.group == "g"}
        others = {AlertKind.COLLECTION, AlertKind.ANALYSIS, AlertKind.SHARED_INCIDENT}
        assert kinds == set(AlertKind) - CLUSTER_FINDINGS - others
        assert {kind.value for kind in FindingKind} < {kind.value for kind in kinds}

    def test_idle_members_are_found_while_it_is_settled_who_owns_what(
        self, reader: LakeReader, writer: LakeWriter
    ) -> None:
        rebalancing = {"status": "unknown", "reason": "rebalancing", "members": 5, "idle_members": 5}
        writer.all_well(
            at(0),
            {
                "idle": {"status": "ok", "members": 5, "idle_members": 2},
                "busy": {"status": "ok", "members": 5, "idle_members": 0},
                "not known": {"status": "ok", "members": None, "idle_members": None},
                "rebalancing": rebalancing,
            },
        )
        now = seen(reader.read(at(5)), 5)
        found = {
            name: group(now, name, AlertKind.IDLE_MEMBERS) for name in ("idle", "busy", "not known", "rebalancing")
        }
        assert {name: c.found_count for name, c in found.items()} == {
            "idle": 2,
            "busy": 0,
            "not known": 0,
            "rebalancing": 0,
        }
        assert [name for name, c in found.items() if c.is_found] == ["idle"]
        assert found["idle"].sentence == "2 of 5 members own no partition, so that they do nothing."

    def test_ghosts_are_counted(self, reader: LakeReader, writer: LakeWriter) -> None:
        counts = [{"status": "ok", "partitions": 4}, {"status": "ghost", "partitions": 3}]
        writer.all_well(at(0), {"moved": {"status": "ok", "partitions_by_status": counts}, "g": "ok"})
        now = seen(reader.read(at(5)), 5)
        moved = group(now, "moved", AlertKind.GHOSTS)
        assert (moved.is_found, moved.found_count) == (True, 3)
        assert moved.sentence == "Commits are left on 3 partitions of topics that it reads no more."
        assert not group(now, "g", AlertKind.GHOSTS).is_found

    def test_a_storm_is_one_until_it_has_been_quiet_for_a_quarter_of_an_hour(
        self, reader: LakeReader, writer: LakeWriter
    ) -> None:
        writer.storm(at(0), "storming")
        writer.storm(at(0), "deployed", is_storm=False)
        for seconds, is_found in ((60, True), (899, True), (900, False)):
            writer.all_well(at(seconds), {"storming": "ok", "deployed": "ok"})
            now = seen(reader.read(at(seconds + 5)), seconds + 5)
            storming = group(now, "storming", AlertKind.REBALANCE_STORM)
            assert storming.is_found is is_found
            assert storming.sentence == ("storming was rebalanced 7 times" if is_found else "storming is ok")
            assert not group(now, "deployed", AlertKind.REBALANCE_STORM).is_found
        writer.storm(at(900), "storming")
        assert group(seen(reader.read(at(910)), 910), "storming", AlertKind.REBALANCE_STORM).is_found

    def test_verdicts_on_capacity_of_all_topics_the_worst_first(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(at(0), {"g": "ok", "unjudged": "ok"})
        verdicts = {"a": "enough", "b": "tight", "c": "short", "d": "oversized", "e": "undecided", "f": "unheard of"}
        writer.capacity(at(0), "g", verdicts)
        now = seen(reader.read(at(5)), 5)
        found = group(now, "g", AlertKind.CAPACITY)
        assert found.found_words == {"enough", "tight", "short", "oversized", "undecided"}
        assert found.sentence == (
            "c: short. It can do what it can on c. b: tight. It can do what it can on b. "
            "d: oversized. It can do what it can on d. And 1 more."
        )
        assert not group(now, "unjudged", AlertKind.CAPACITY).is_found
        writer.capacity(at(15), "g", {"a": "enough"})
        assert group(seen(reader.read(at(20)), 20), "g", AlertKind.CAPACITY).found_words == {"enough"}

    def test_what_is_not_a_number_is_not_known(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(
            at(0), {"g": {"status": "stopped", "lag_seconds": float("nan"), "seconds_to_loss": float("inf")}}
        )
        numbers = group(seen(reader.read(at(5)), 5), "g").numbers
        assert (numbers.lag_seconds, numbers.seconds_to_loss) == (None, None)

    def test_a_status_of_the_future_is_unknown(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(at(0), {"g": "on_fire"})
        assert group(seen(reader.read(at(5)), 5), "g").status is Status.UNKNOWN

    def test_of_clusters_that_are_not_in_the_settings_are_left_out(
        self, reader: LakeReader, writer: LakeWriter
    ) -> None:
        writer.all_well(at(0), {"g": "stopped"})
        now = seen(reader.read(at(5)), 5, clusters=("other",))
        assert [c.subject.kind for c in now.conditions] == [AlertKind.COLLECTION, AlertKind.ANALYSIS]

    def test_without_clusters_in_the_settings_those_of_the_lake_count(
        self, reader: LakeReader, writer: LakeWriter
    ) -> None:
        writer.all_well(at(0), {"g": "stopped"})
        assert group(seen(reader.read(at(5)), 5, clusters=()), "g").status is Status.STOPPED


class TestGettingOlder:
    """A consumer restarts every minute and reads four fifths: its age is a sawtooth that climbs."""

    def _age(self, second: float) -> float:
        return 0.2 * second + second % 60

    def _history(self, lake: Lake, group: str, ages: dict[int, float]) -> None:
        rows = [
            {
                "cluster": CLUSTER,
                "group": group,
                "as_of": at(second),
                "status": "lagging",
                "lag": 9,
                "lag_seconds": age,
                "lag_seconds_is_lower_bound": False,
            }
            for second, age in ages.items()
        ]
        lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(rows))

    def test_is_known_at_once_from_the_history_and_followed_from_then_on(self, lake: Lake, writer: LakeWriter) -> None:
        past = range(-3600, 0, 15)
        self._history(lake, "climbs", {s: self._age(s + 3600) for s in past})
        self._history(lake, "wanders", {s: 600.0 + s % 60 for s in past})
        reader = LakeReader(lake, lambda _: 300.0, 15.0)
        shown = []
        for second in (0, 15, 30):
            ages = {"climbs": self._age(second + 3600), "wanders": 600.0 + second % 60, "caught up": 1.0}
            ages["climbs"] = 1.0 if second == 30 else ages["climbs"]
            status = {name: {"status": "lagging", "lag_seconds": age} for name, age in ages.items()}
            writer.all_well(at(second), {**status, "no age": {"status": "unknown", "lag_seconds": None}})
            now = seen(reader.read(at(second + 5)), second + 5)
            names = (*ages, "no age")
            shown.append({name for name in names if group(now, name).is_getting_older})
            said = group(now, "climbs").sentence.endswith(GETTING_OLDER)
            assert said is ("climbs" in shown[-1])
            assert not group(now, "wanders").sentence.endswith(GETTING_OLDER)
        reader.close()
        assert shown == [{"climbs"}, {"climbs"}, set()]

    def test_asks_for_as_long_as_the_objective(self, lake: Lake, writer: LakeWriter) -> None:
        self._history(lake, "climbs", {s: self._age(s + 3600) for s in range(-3600, 0, 15)})
        writer.all_well(at(0), {"climbs": {"status": "lagging", "lag_seconds": self._age(3600)}})
        reader = LakeReader(lake, lambda _: 7200.0, 15.0)
        assert not group(seen(reader.read(at(5)), 5), "climbs").is_getting_older
        reader.close()


class TestSignsOfLife:
    @pytest.mark.parametrize(
        ("why", "here", "elsewhere", "active"),
        [
            ("a mirror copies the offsets of the other cluster's group", "simple", "classic", False),
            ("the same of a group of the new protocol", "simple", "consumer", False),
            ("two jobs that commit from outside, one in each cluster", "simple", "simple", True),
            ("a group of its own in each cluster: production and a test", "classic", "classic", True),
            ("the group that is copied", "classic", "simple", True),
            ("what it is elsewhere is not known", "simple", None, True),
            ("what it is here is not known", None, "classic", True),
        ],
    )
    def test_of_a_mirrored_group_they_are_the_mirror_s(
        self, reader: LakeReader, writer: LakeWriter, why: str, here: str | None, elsewhere: str | None, active: bool
    ) -> None:
        both = {
            "group": "g",
            "status": "stopped",
            "commits_seen": 1,
        }
        writer.all_well(at(0), {"a": both | {"type": here}, "b": both | {"cluster": "source", "type": elsewhere}})
        observation = seen(reader.read(at(5)), 5, clusters=(CLUSTER, "source"))
        assert group(observation, "g").seen_active is active, why

    @pytest.mark.parametrize(
        ("why", "row", "active"),
        [
            ("no members, nothing committed, and lag", {"status": "stopped"}, False),
            ("an abandoned group on a busy topic", {"status": "falling_behind", "commits_seen": 0}, False),
            ("deleted unread long ago", {"status": "losing_data"}, False),
            ("not yet judged", {"status": "unknown", "reason": "too_few_samples"}, False),
            ("members", {"status": "losing_data", "members": 1}, True),
            ("commits from outside the group protocol", {"status": "at_risk", "commits_seen": 1}, True),
            ("nothing left unread", {"status": "ok"}, True),
            ("it catches up", {"status": "catching_up"}, True),
            ("somebody holds the partition", {"status": "stalled"}, True),
        ],
    )
    def test_now(self, reader: LakeReader, writer: LakeWriter, why: str, row: dict[str, object], active: bool) -> None:
        writer.all_well(at(0), {"g": row})
        assert group(seen(reader.read(at(5)), 5), "g").seen_active is active, why

    def test_in_the_history(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(at(0), dict.fromkeys(["alive", "abandoned", "pruned", "partition"], "stopped"))
        writer.change(at(-900), "alive", None, "ok")
        writer.change(at(-600), "alive", "ok", "stopped")
        writer.change(at(-900), "abandoned", None, "unknown")
        writer.change(at(-600), "abandoned", "unknown", "stopped")
        writer.change(at(-300), "pruned", "catching_up", "stopped")
        writer.change(at(-300), "partition", None, "ok", topic="t")
        now = seen(reader.read(at(5)), 5)
        known = {name: group(now, name).seen_active for name in ("alive", "abandoned", "pruned", "partition")}
        assert known == {"alive": True, "abandoned": False, "pruned": True, "partition": False}

    def test_is_unknown_while_the_history_cannot_be_read(
        self, reader: LakeReader, writer: LakeWriter, lake: Lake
    ) -> None:
        writer.all_well(at(0), {"g": "stopped"})
        writer.change(at(-900), "g", None, "ok")
        file = Path(lake.files(STATUS_CHANGES)[0])
        content = file.read_bytes()
        file.write_bytes(b"rubbish")
        snapshot = reader.read(at(5))
        assert group(seen(snapshot, 5), "g").seen_active is None
        assert len(snapshot.trouble) == 1
        file.write_bytes(content)
        snapshot = reader.read(at(10))
        assert group(seen(snapshot, 10), "g").seen_active is True
        assert not snapshot.trouble


class TestFreshness:
    def test_of_the_collection(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0))
        writer.sample(at(60), interval=30.0)
        one = fresh(seen(reader.read(at(70)), 70), AlertKind.COLLECTION)
        assert one.newest_at == at(60)
        assert one.floor_seconds == 90

    def test_a_sample_that_read_nothing_is_no_data(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0))
        writer.sample(at(15), groups=0, errors=[{"kind": "transport", "count": 3, "example": "broker\ndown"}])
        one = fresh(seen(reader.read(at(20)), 20), AlertKind.COLLECTION)
        assert one.newest_at == at(0)
        assert "transport (3×: broker\\ndown)" in one.sentence

    def test_an_empty_cluster_is_data(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0), groups=0)
        assert fresh(seen(reader.read(at(5)), 5), AlertKind.COLLECTION).newest_at == at(0)

    def test_a_cluster_without_any_sample(self, reader: LakeReader) -> None:
        assert fresh(seen(reader.read(at(5)), 5), AlertKind.COLLECTION).newest_at is None

    def test_the_analysis_is_late_when_samples_wait(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0))
        writer.sample(at(15))
        assert fresh(seen(reader.read(at(20)), 20), AlertKind.ANALYSIS).newest_at == at(0), "it has never run"
        writer.tick(at(25), read_until=at(0))
        assert fresh(seen(reader.read(at(30)), 30), AlertKind.ANALYSIS).newest_at == at(15)
        writer.tick(at(35), read_until=at(15))
        assert fresh(seen(reader.read(at(40)), 40), AlertKind.ANALYSIS).newest_at == at(40)

    def test_the_analysis_is_as_late_as_its_latest_cluster(self, reader: LakeReader, lake: Lake) -> None:
        for cluster, seconds in (("a", 0), ("b", 20)):
            LakeWriter(lake, cluster).sample(at(seconds))
        now = seen(reader.read(at(30)), 30, clusters=("a", "b"))
        assert fresh(now, AlertKind.ANALYSIS).newest_at == at(0)
        assert fresh(seen(reader.read(at(30)), 30, clusters=("b",)), AlertKind.ANALYSIS).newest_at == at(20)

    def test_without_new_samples_the_analysis_is_not_late(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(at(0), {"g": "ok"})
        assert fresh(seen(reader.read(at(3600)), 3600), AlertKind.ANALYSIS).newest_at == at(3600)

    def test_how_far_the_verdicts_reach(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.all_well(at(0), {"g": "ok"})
        writer.sample(at(15), errors=[{"kind": "timeout", "count": 1, "example": None}])
        view = seen(reader.read(at(20)), 20).clusters[CLUSTER]
        assert view.judged_until == at(0)
        assert not view.without_errors
        assert view.valid_for_seconds == 120

    def test_long_intervals_are_given_time(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0), interval=3600.0)
        now = seen(reader.read(at(20)), 20)
        assert now.clusters[CLUSTER].valid_for_seconds == 3 * 3615
        assert fresh(now, AlertKind.COLLECTION).floor_seconds == 3 * 3600

    def test_samples_of_last_week_are_not_looked_for(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(-7 * 86400))
        assert fresh(seen(reader.read(at(0)), 0), AlertKind.COLLECTION).newest_at is None


class TestTrouble:
    def test_a_lake_that_is_not_there_yet_is_empty(self, tmp_path: Path) -> None:
        reader = LakeReader(Lake(str(tmp_path / "none")))
        snapshot = reader.read(at(0))
        reader.close()
        assert snapshot.groups == ()
        assert not snapshot.trouble

    def test_what_cannot_be_read_stays_as_it_was_and_says_so(
        self, reader: LakeReader, writer: LakeWriter, lake: Lake
    ) -> None:
        writer.all_well(at(0), {"g": "stopped"})
        reader.read(at(5))
        writer.all_well(at(15), {"g": "ok"})
        Path(lake.files(GROUP_STATUS)[0]).write_bytes(b"rubbish")
        snapshot = reader.read(at(20))
        assert [row.record.as_of for row in snapshot.groups] == [at(0)]
        assert snapshot.collections is not None
        assert snapshot.collections[CLUSTER].newest_at == at(15), "the other tables are read all the same"
        (line,) = snapshot.trouble
        assert "\n" not in line
        assert fresh(seen(snapshot, 20), AlertKind.ANALYSIS).newest_at == at(20)
        snapshot = reader.read(at(25))
        assert fresh(seen(snapshot, 25), AlertKind.ANALYSIS).newest_at == at(20), "since when it cannot be read"
        writer.all_well(at(30), {"g": "ok"})
        snapshot = reader.read(at(35))
        assert [row.record.as_of for row in snapshot.groups] == [at(30)]
        assert not snapshot.trouble

    def test_a_broken_log_of_a_table(self, reader: LakeReader, writer: LakeWriter, lake: Lake) -> None:
        writer.all_well(at(0), {"g": "stopped"})
        reader.read(at(5))
        writer.all_well(at(15), {"g": "ok"})
        log = Path(lake.location(GROUP_STATUS)) / "_delta_log"
        newest = max(log.glob("*.json"))
        newest.write_bytes(b"{rubbish")
        snapshot = reader.read(at(20))
        assert len(snapshot.trouble) == 1
        assert [row.record.as_of for row in snapshot.groups] == [at(0)]

    def test_a_damaged_file_that_is_quarantined_ends_no_alert(
        self, reader: LakeReader, writer: LakeWriter, lake: Lake
    ) -> None:
        """It leaves the table empty until the next round; an empty table must not pass for groups that are gone."""
        player, seconds = Player(book()), 0.0
        writer.change(at(-900), "g", None, "ok")
        for _ in range(3):
            writer.all_well(at(seconds), {"g": {"status": "losing_data", "since": at(-600)}})
            player.see(seconds, seen(reader.read(at(seconds)), seconds))
            seconds += 15
        before = set(player.alerts)
        assert before
        Path(lake.files(GROUP_STATUS)[0]).write_bytes(b"rubbish")
        for damaged_or_empty in range(8):
            if damaged_or_empty == 4:
                assert len(repair(lake, inspect(lake), at(seconds)).quarantined) == 1
            writer.sample(at(seconds))
            snapshot = reader.read(at(seconds))
            player.see(seconds, seen(snapshot, seconds))
            assert (set(player.alerts), len(snapshot.groups)) == (before, 0 if damaged_or_empty >= 4 else 1)
            seconds += 15
        writer.all_well(at(seconds), {"g": "losing_data"})
        player.see(seconds, seen(reader.read(at(seconds)), seconds))
        assert set(player.alerts) == before
        assert not player.ended


class TestCost:
    def test_what_has_not_changed_is_not_read_again(self, reader: LakeReader, writer: LakeWriter, lake: Lake) -> None:
        """The data files are taken away: only somebody who reads them would notice."""
        writer.all_well(at(0), {"g": "stopped"})
        writer.change(at(-900), "g", None, "ok")
        first = reader.read(at(5))
        for folder, _, names in os.walk(lake.uri):
            for name in names:
                if name.endswith(".parquet"):
                    (Path(folder) / name).unlink()
        assert reader.read(at(5) + timedelta(seconds=5)) == first

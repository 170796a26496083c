"""Offsets in members' own files: read as clients write them, and shipped to where they can be read."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from lagwise.config import RocketmqCluster
from lagwise.config.rocketmq import LocalOffsetFiles
from lagwise.domain.vocabulary import GroupState
from lagwise.platform.errors import ConfigError
from lagwise.tables.raw import COMMITS, GROUPS
from lagwise_app.cli import cli
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.local_offsets import LocalOffsets, progress_of
from lagwise_collectors.rocketmq.remoting.requests import MemberReport, Queue
from lagwise_collectors.rocketmq.ship_offsets import OffsetShipper
from lagwise_collectors.rocketmq.source import RocketmqSource
from tests.collectors.kafka import rows
from tests.collectors.rocketmq_server import Broker, Server, name_server
from tests.collectors.test_rocketmq_groups import Q, group_of

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
#: As RocketMQ 5's client writes it.
WRITTEN = """{
\t"offsetTable":{{
\t\t\t"brokerName":"broker-a",
\t\t\t"queueId":1,
\t\t\t"topic":"orders"
\t\t}:772,{
\t\t\t"brokerName":"broker-a",
\t\t\t"queueId":0,
\t\t\t"topic":"orders"
\t\t}:0
\t}
}"""


def text_of(offsets: Mapping[int, int], topic: str = "orders") -> str:
    entries = [f'{{"brokerName":"broker-a","queueId":{q},"topic":"{topic}"}}:{at}' for q, at in offsets.items()]
    return f'{{"offsetTable":{{{",".join(entries)}}}}}'


def put(folder: Path, client: str, text: str, *, group: str = "caches", age_s: float = 5, name: str = "") -> Path:
    path = folder / client / group / (name or "offsets.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    at = NOW.timestamp() - age_s
    os.utime(path, (at, at))
    return path


def reader(folder: Path, **changes: float) -> LocalOffsets:
    return LocalOffsets(LocalOffsetFiles(path=f"{folder}/*/*/offsets.json", **changes), lambda: NOW)


def looked(local: LocalOffsets) -> tuple[dict[str, dict[str, Mapping[Queue, int]]], dict[str, int]]:
    errors = ErrorTally()
    local.begin()
    return local.finish(errors), dict(errors.counts)


# --- reading ---


def test_the_file_is_read_as_clients_write_it() -> None:
    assert progress_of(WRITTEN.encode()) == {Queue("orders", "broker-a", 1): 772, Queue("orders", "broker-a", 0): 0}


def test_a_file_names_its_client_and_group(tmp_path: Path) -> None:
    put(tmp_path, "10.0.0.7@DEFAULT", text_of({0: 5}))
    put(tmp_path, "10.0.0.8@DEFAULT", text_of({0: 7}))
    found, errors = looked(reader(tmp_path))
    assert found == {"caches": {"10.0.0.7@DEFAULT": {Q[0]: 5}, "10.0.0.8@DEFAULT": {Q[0]: 7}}}
    assert errors == {}


def test_who_has_not_written_for_long_is_gone(tmp_path: Path) -> None:
    put(tmp_path, "a", text_of({0: 5}), age_s=3_601)
    put(tmp_path, "b", text_of({0: 7}), age_s=3_599)
    assert looked(reader(tmp_path))[0] == {"caches": {"b": {Q[0]: 7}}}
    assert set(looked(reader(tmp_path, max_age_hours=2))[0]["caches"]) == {"a", "b"}


def test_while_a_client_replaces_its_file_the_one_before_counts(tmp_path: Path) -> None:
    put(tmp_path, "a", text_of({0: 4}), name="offsets.json.bak")
    put(tmp_path, "b", text_of({0: 6}), name="offsets.json.bak")
    put(tmp_path, "b", text_of({0: 7}))
    assert looked(reader(tmp_path))[0] == {"caches": {"a": {Q[0]: 4}, "b": {Q[0]: 7}}}


@pytest.mark.parametrize(
    "text", ["", '{"offsetTable":{{"brokerName":"b', "[1]", '{"offsetTable":{"x":1}}', text_of({0: 2**70}), "\0"]
)
def test_a_file_that_makes_no_sense_costs_only_itself(tmp_path: Path, text: str) -> None:
    put(tmp_path, "a", text_of({0: 5}))
    put(tmp_path, "b", text_of({0: 7}))
    local = reader(tmp_path)
    looked(local)
    put(tmp_path, "b", text)
    assert looked(local) == ({"caches": {"a": {Q[0]: 5}, "b": {Q[0]: 7}}}, {"external_offsets_malformed": 1})


def test_no_file_at_all_is_no_error(tmp_path: Path) -> None:
    assert looked(reader(tmp_path / "nothing")) == ({}, {})


def test_the_path_must_name_client_and_group() -> None:
    for path in ("offsets.json", "/srv/offsets.json", "/srv/*/*/*.json"):
        with pytest.raises(ValueError, match="CLIENT_ID/GROUP"):
            LocalOffsetFiles(path=path)
    with pytest.raises(ValueError, match="contains a secret"):
        LocalOffsetFiles(path="s3://key:sesame-sesame@bucket/*/*/offsets.json")


# --- what a group is then ---


def test_a_member_that_is_not_there_holds_the_group_back() -> None:
    group = group_of({"a": MemberReport(dict.fromkeys(Q, 9))}, broadcasting=True, local={"b": {Q[0]: 2, Q[1]: 30}})
    assert group.progress == {Q[0]: 2, Q[1]: 9, Q[2]: 9}
    assert group.owners == {Q[1]: "a", Q[2]: "a"}  # what waits for b has no owner
    assert [member.client_id for member in group.members] == ["a"]


def test_a_member_that_does_not_answer_is_as_far_as_its_file() -> None:
    group = group_of({"a": MemberReport(dict.fromkeys(Q, 9)), "b": None}, broadcasting=True, local={"b": {Q[0]: 2}})
    assert group.progress == {Q[0]: 2, Q[1]: None, Q[2]: None}
    assert group.owners[Q[0]] == "b"


def test_what_a_member_reports_wins_over_its_file() -> None:
    group = group_of({"a": MemberReport(dict.fromkeys(Q, 9))}, broadcasting=True, local={"a": dict.fromkeys(Q, 3)})
    assert group.progress == dict.fromkeys(Q, 9)


def test_files_say_nothing_of_a_group_that_shares_its_queues() -> None:
    group = group_of({"a": MemberReport(dict.fromkeys(Q, 9))}, local={"b": {Q[0]: 2}})
    assert (group.progress, group.type) == (None, "concurrent")


def test_a_group_without_online_members_is_known_by_its_files(tmp_path: Path) -> None:
    put(tmp_path, "a", text_of({0: 60, 1: 70}), group="billing")
    put(tmp_path, "b", text_of({0: 30}), group="billing")
    put(tmp_path, "b", text_of({0: 30}), group="of another cluster")
    with Server(Broker()) as broker, Server(name_server({"broker-a": {0: broker.address}})) as names:
        cluster = RocketmqCluster(
            system="rocketmq",
            name_servers=names.address,
            local_offsets=LocalOffsetFiles(path=f"{tmp_path}/*/*/offsets.json"),
        )
        source = RocketmqSource(cluster, lambda: NOW)
        snapshot = source.collect()
        source.close()
    commits = {(r["group"], r["partition"]): (r["committed"], r["owner"]) for r in rows(snapshot, COMMITS)}
    assert commits == {("billing", 0): (30, None), ("billing", 1): (70, None)}
    assert [(g["group"], g["state"], g["type"], g["member_count"]) for g in rows(snapshot, GROUPS)] == [
        ("billing", GroupState.EMPTY, "broadcasting", 0)
    ]


# --- shipping ---


def ship(folder: Path, place: Path, **changes: float) -> OffsetShipper:
    return OffsetShipper(
        folder, str(place), max_age_seconds=changes.get("max_age_seconds", 86_400), clock=NOW.timestamp
    )


def test_what_was_written_is_copied_once(tmp_path: Path) -> None:
    there = tmp_path / "there"
    mine = put(tmp_path / "here", "10.0.0.7@DEFAULT", WRITTEN)
    shipping = ship(tmp_path / "here", there)
    assert (shipping.round().copied, shipping.round().copied) == (1, 0)
    assert (there / "10.0.0.7@DEFAULT" / "caches" / "offsets.json").read_text() == WRITTEN
    put(tmp_path / "here", "10.0.0.7@DEFAULT", text_of({0: 9}), age_s=1)
    assert shipping.round().copied == 1
    assert mine.exists()


def test_what_is_there_already_is_not_made_young_by_a_restart(tmp_path: Path) -> None:
    put(tmp_path / "here", "a", text_of({0: 9}))
    assert ship(tmp_path / "here", tmp_path / "there").round().copied == 1
    assert ship(tmp_path / "here", tmp_path / "there").round().copied == 0


def test_what_is_old_or_half_written_is_not_copied(tmp_path: Path) -> None:
    put(tmp_path / "here", "a", text_of({0: 9}), age_s=86_401)
    put(tmp_path / "here", "b", text_of({0: 9})[:30])
    shipped = ship(tmp_path / "here", tmp_path / "there").round()
    assert (shipped.found, shipped.copied, shipped.old) == (2, 0, 1)
    assert [line.partition(":")[0] for line in shipped.failed] == ["b/caches/offsets.json"]
    assert not list((tmp_path / "there").rglob("offsets.json"))


def test_an_unwritable_location_is_reported_and_tried_again(tmp_path: Path) -> None:
    put(tmp_path / "here", "a", text_of({0: 9}))
    (tmp_path / "there").write_text("a file")
    shipping = ship(tmp_path / "here", tmp_path / "there")
    assert len(shipping.round().failed) == 1
    (tmp_path / "there").unlink()
    assert shipping.round().copied == 1


def test_places_that_are_none_are_refused(tmp_path: Path) -> None:
    for place, why in (("nosuch://x/y", "cannot be written to"), ("s3://key:sesame-sesame@bucket/x", "holds a secret")):
        with pytest.raises(ConfigError, match=why):
            OffsetShipper(tmp_path, place, max_age_seconds=60)
    with pytest.raises(ConfigError, match="--from"):
        OffsetShipper(tmp_path / "nothing", str(tmp_path), max_age_seconds=60)


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    path = put(tmp_path / "here", "a", text_of({0: 9}))
    os.utime(path)  # by the real clock, which the command goes by
    options = ["ship-offsets", "--from", f"{tmp_path}/here", "--to", f"{tmp_path}/there", "--once"]
    first, second = CliRunner().invoke(cli, options), CliRunner().invoke(cli, [*options, "--json"])
    assert (first.exit_code, first.output) == (0, "1 copied; 1 file found, 0 too old to copy\n")
    assert json.loads(second.output) == {"found": 1, "copied": 0, "old": 0, "failed": []}
    there = LocalOffsetFiles(path=f"{tmp_path}/there/*/*/offsets.json")
    assert looked(LocalOffsets(there, lambda: datetime.now(UTC)))[0] == {"caches": {"a": {Q[0]: 9}}}
    path.write_text("{")
    os.utime(path, (path.stat().st_mtime + 5,) * 2)
    assert CliRunner().invoke(cli, options).exit_code == 1


def test_the_doctor_says_what_it_found(tmp_path: Path) -> None:
    put(tmp_path, "a", text_of({0: 60}))
    put(tmp_path, "b", text_of({0: 60}))
    for path in tmp_path.rglob("offsets.json"):
        os.utime(path)
    with Server(Broker()) as broker, Server(name_server({"broker-a": {0: broker.address}})) as names:
        files = LocalOffsetFiles(path=f"{tmp_path}/*/*/offsets.json")
        source = RocketmqSource(RocketmqCluster(system="rocketmq", name_servers=names.address, local_offsets=files))
        (well,) = [check for check in source.check() if check.name == "local offsets"]
        put(tmp_path, "b", "{")
        os.utime(tmp_path / "b" / "caches" / "offsets.json")
        (ill,) = [check for check in source.check() if check.name == "local offsets"]
    assert (well.ok, well.detail) == (True, "2 files of 1 group")
    assert (ill.ok, ill.required) == (False, False)
    assert "b/caches/offsets.json" in ill.detail

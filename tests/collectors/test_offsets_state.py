"""What the reader of ``__consumer_offsets`` keeps: whole or not at all; a restart loses and invents nothing."""

import json
import random
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from lagwise.platform.files import replace_file
from lagwise_collectors.offsets_topic import state_file
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.sample_diff.events import Event, as_rows
from tests.collectors.offsets_records import TOPIC_ID, Classic, Rec, Topic

T = [("t", p) for p in range(6)]
I = [(TOPIC_ID, p) for p in range(6)]  # noqa: E741  (the same by id)
IDENTITY = {"topic_id": "a", "partitions": 1, "include": [".*"], "exclude": []}


def busy_hour(seed: int) -> list[Rec]:
    """Some groups in both protocols, whose members come, go, fail and commit at random."""
    chance = random.Random(seed)
    topic = Topic()
    topic.ledger.groups.session_ms = 45_000
    generations, epochs = {"c1": 0, "c2": 0}, {"n1": 1, "n2": 1}
    names: dict[str, set[str]] = {"n1": set(), "n2": set()}
    for _ in range(120):
        topic.after(chance.choice([0.2, 2, 5, 20, 46, 301]))
        group = chance.choice([*generations, *epochs, "simple"])
        if chance.random() < 0.6 or group == "simple":
            offset = None if chance.random() < 0.1 else chance.randrange(1000)
            topic.commit(group, offset, *chance.sample(T, chance.randrange(1, 4)))
        elif group in generations:
            if chance.random() < 0.1:
                topic.no_classic(group)
                generations[group] = 0
                continue
            generations[group] += chance.choice([0, 1, 1, 1, 2])
            members = chance.sample(["a", "b", "c"], chance.randrange(4))
            width = chance.choice([4, 4, 4, 6])
            topic.classic(
                group,
                generations[group],
                **{
                    name: Classic(T[n:width:2], instance="i" if name == "c" else None, member_id=f"m{chance.random()}")
                    for n, name in enumerate(members)
                },
            )
        else:
            name = chance.choice(["x", "y", "z"])
            if name in names[group] and chance.random() < 0.5:
                topic.without(group, name)
                names[group].discard(name)
            elif name not in names[group]:
                topic.member(group, name, instance="j" if name == "z" else None)
                names[group].add(name)
            if chance.random() < 0.7:
                epochs[group] += 1
                topic.epoch(group, epochs[group])
            shares = {name: I[n:4:2] for n, name in enumerate(sorted(names[group]))}
            topic.target(group, epochs[group], **shares)
            for name, owned in shares.items():
                if chance.random() < 0.7:
                    topic.has(group, name, epochs[group], owned, state=chance.choice([0, 0, 0, 1]))
    return topic.records


def read(ledger: Ledger, records: list[Rec]) -> list[Event]:
    ledger.feed(records)
    taken = ledger.take()
    for pair in taken.committed:
        pair.commits = 0
    return taken.events


def fresh() -> Ledger:
    ledger = Ledger(lambda name: True)
    ledger.retention_ms, ledger.groups.session_ms = 600_000, 45_000
    return ledger


@pytest.mark.parametrize("seed", range(12))
def test_a_restart_anywhere_changes_nothing(seed: int, tmp_path: Path) -> None:
    records = busy_hour(seed)
    cut = random.Random(seed).randrange(20, len(records) - 20)
    while abs(records[cut].at_ms - records[cut - 1].at_ms) < 1_000:
        cut += 1  # what a coordinator writes at once is read at once
    whole = fresh()
    expected = read(whole, records[:cut]) + read(whole, records[cut:])
    assert len(expected) > 10
    first, second = fresh(), fresh()
    found = read(first, records[:cut])
    replace_file(tmp_path / "state", state_file.serialise(first, IDENTITY))
    assert state_file.restore(tmp_path / "state", second, IDENTITY)
    assert second.positions == {0: cut}
    assert found + read(second, records[cut:]) == expected
    assert state_file.serialise(second, IDENTITY) == state_file.serialise(whole, IDENTITY)


def test_reading_a_piece_again_repeats_its_events_exactly(tmp_path: Path) -> None:
    """A kill between handing events over and keeping the position: readers take distinct rows."""
    records = busy_hour(5)
    killed, next_one = fresh(), fresh()
    read(killed, records[:150])
    replace_file(tmp_path / "state", state_file.serialise(killed, IDENTITY))
    handed_over = read(killed, records[150:250])
    assert handed_over
    assert state_file.restore(tmp_path / "state", next_one, IDENTITY)
    assert as_rows(read(next_one, records[150:250]), "shop").equals(as_rows(handed_over, "shop"))


class TestFile:
    def kept(self, tmp_path: Path) -> Path:
        ledger = fresh()
        read(ledger, busy_hour(1))
        path = tmp_path / "deep" / "state"
        replace_file(path, state_file.serialise(ledger, IDENTITY))
        return path

    def test_no_file_is_no_state(self, tmp_path: Path) -> None:
        assert not state_file.restore(tmp_path / "none", fresh(), IDENTITY)

    @pytest.mark.parametrize("keep", [0, 1, 30, 40, 500, -1])
    def test_a_torn_file_is_refused(self, tmp_path: Path, keep: int) -> None:
        path = self.kept(tmp_path)
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(state_file.UnusableStateError, match="damaged"):
            state_file.restore(path, fresh(), IDENTITY)

    def test_a_flipped_bit_is_found(self, tmp_path: Path) -> None:
        path = self.kept(tmp_path)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        with pytest.raises(state_file.UnusableStateError, match="damaged"):
            state_file.restore(path, fresh(), IDENTITY)

    def test_the_state_of_another_topic_or_other_groups_is_refused(self, tmp_path: Path) -> None:
        path = self.kept(tmp_path)
        for change in ({"topic_id": "b"}, {"partitions": 2}, {"include": ["a"]}):
            with pytest.raises(state_file.UnusableStateError, match="another topic or other groups"):
                state_file.restore(path, fresh(), {**IDENTITY, **change})

    def test_a_state_with_a_right_checksum_and_wrong_content_is_refused(self, tmp_path: Path) -> None:
        path = self.kept(tmp_path)
        first, _, body = path.read_bytes().partition(b"\n")
        size = int.from_bytes(body[:8], "big")
        head = json.loads(body[8 : 8 + size])
        del head["positions"]
        text = json.dumps(head).encode()
        body = len(text).to_bytes(8, "big") + text + body[8 + size :]
        path.write_bytes(b"%s %08x\n" % (first.split()[0], zlib.crc32(body)) + body)
        with pytest.raises(state_file.UnusableStateError, match="has unexpected contents"):
            state_file.restore(path, fresh(), IDENTITY)

    def test_a_state_whose_groups_have_other_fields_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @dataclass
        class Older:
            members: list[str]

        @dataclass
        class Newer(Older):
            epoch: int = 0

        older, newer = (state_file.format_of(TypeAdapter(shape)) for shape in (Older, Newer))
        assert older != newer
        monkeypatch.setattr(state_file, "_FORMAT", older)
        path = self.kept(tmp_path)
        monkeypatch.setattr(state_file, "_FORMAT", newer)
        with pytest.raises(state_file.UnusableStateError, match="of another version"):
            state_file.restore(path, fresh(), IDENTITY)

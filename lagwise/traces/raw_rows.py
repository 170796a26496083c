"""From the rows of a trace's files to rows of the raw tables, as a collector would have written them."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lagwise.domain.vocabulary import REBALANCING_STATES, GroupState
from lagwise.traces.csv_files import LINE, Row, TraceError

#: Where second 0 of a trace lies; any fixed moment would do.
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)

#: States in which a group has members that own something.
_OWNING = frozenset(set(GroupState) - REBALANCING_STATES - {GroupState.EMPTY, GroupState.DEAD, GroupState.UNKNOWN})


def moment(time_s: float) -> datetime:
    """A trace's time as a point in time."""
    return ORIGIN + timedelta(seconds=time_s)


def sample_id(index: int) -> str:
    """The id of a trace's sample."""
    return f"{index:08d}"


def sample_times(times: Iterable[float], interval: float) -> tuple[float, ...]:
    """When the samples were taken. Times less than half an interval apart are one sample: commits and watermarks are
    read one after the other."""
    samples: list[float] = []
    for at in sorted(set(times)):
        if not samples or at - samples[-1] >= interval / 2:
            samples.append(at)
    return tuple(samples)


class Samples:
    """Assigns the rows of the files to samples."""

    def __init__(self, times: tuple[float, ...], interval: float) -> None:
        self._times = times
        self._interval = interval

    def place(self, rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
        """Each row with the index of its sample, in order of time.

        A row that falls between two samples, such as a change of state noted when it happened, is seen by the next.
        """
        for row in sorted(rows, key=lambda r: (r["time_s"], r[LINE])):
            index = max(0, bisect_right(self._times, row["time_s"] + 1e-9) - 1)
            if row["time_s"] - self._times[index] >= self._interval / 2:
                index += 1
            if index < len(self._times):
                yield index, row

    def stamp(self, index: int) -> Row:
        """What all raw rows of a sample share."""
        return {"sample_id": sample_id(index), "sampled_at": moment(self._times[index])}

    def __len__(self) -> int:
        return len(self._times)


def raw_rows(folder: Path, samples: Samples, files: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Rows of the raw tables by name, from the rows of each file. Raises TraceError where a row comes twice."""
    described = _described(samples, files)
    group_rows: list[Row] = []
    member_rows: list[Row] = []
    owner_of: dict[tuple[int, str, str, int], str] = {}
    for (index, name), (state, owned) in described.items():
        stamp = samples.stamp(index) | {"group": name}
        its_members = _members(owned)
        member_rows += [stamp | member for member in its_members]
        group_rows.append(stamp | {"state": state["state"], "type": state["type"], "member_count": len(its_members)})
        for row in owned:
            if row["topic"] is not None and row["partition"] is not None:
                owner_of[index, name, row["topic"], row["partition"]] = row["member_id"]
    return {
        "watermarks": [samples.stamp(i) | row for i, row in _once(folder, "watermarks.csv", samples, files)],
        "commits": _commits(folder, samples, files, owner_of),
        "groups": group_rows,
        "members": member_rows,
        "topics": [samples.stamp(0) | row for row in files["topics.csv"]],
    }


def _once(folder: Path, name: str, samples: Samples, files: Mapping[str, list[Row]]) -> Iterator[tuple[int, Row]]:
    """The rows of a file, each key at most once in a sample: two would be two truths."""
    seen: dict[tuple[object, ...], int] = {}
    for index, row in samples.place(files[name]):
        key = (index, row.get("group"), row["topic"], row["partition"])
        if key in seen:
            raise TraceError(f"{folder / name}, line {row[LINE]}: the same partition as in line {seen[key]}, too soon")
        seen[key] = row[LINE]
        yield index, row


def _commits(
    folder: Path, samples: Samples, files: Mapping[str, list[Row]], owner_of: Mapping[tuple[int, str, str, int], str]
) -> list[Row]:
    """Commits with their owners; a partition that is owned and not committed has a row too."""
    left = dict(owner_of)
    rows = []
    for index, row in _once(folder, "commits.csv", samples, files):
        owner = left.pop((index, row["group"], row["topic"], row["partition"]), None)
        rows.append(samples.stamp(index) | row | {"owner": owner})
    for (index, group, topic, partition), owner in left.items():
        pair = {"group": group, "topic": topic, "partition": partition}
        rows.append(samples.stamp(index) | pair | {"committed": None, "owner": owner})
    return rows


def _described(samples: Samples, files: Mapping[str, list[Row]]) -> dict[tuple[int, str], tuple[Row, list[Row]]]:
    """State and assignments of every group at every sample from the first that has a row of it.

    A recorder may write them only when they change: what was last seen still holds, and a settled group with members
    owns what it owned until a row changes that.
    """
    states = {(index, row["group"]): row for index, row in samples.place(files["groups.csv"])}
    owners: dict[tuple[int, str], list[Row]] = {}
    for index, row in samples.place(files["assignments.csv"]):
        owners.setdefault((index, row["group"]), []).append(row)
    described = {}
    for name in sorted({group for _, group in states}):
        state: Row | None = None
        owned: list[Row] = []
        for index in range(len(samples)):
            state = states.get((index, name), state)
            if state is None:
                continue
            owned = owners.get((index, name), owned)
            has_owners = state["state"] in _OWNING or (index, name) in owners
            described[index, name] = state, owned if has_owners else []
    return described


def _members(owned: list[Row]) -> list[Row]:
    """One row per member from one row per assigned partition (a member without any has an empty topic)."""
    members: dict[str, Row] = {}
    for row in owned:
        member = members.setdefault(
            row["member_id"],
            {"member_id": row["member_id"], "client_id": row["client_id"], "host": row["host"], "topics": {}},
        )
        if row["topic"] is not None and row["partition"] is not None:
            member["topics"].setdefault(row["topic"], set()).add(row["partition"])
    for member in members.values():
        by_topic: dict[str, set[int]] = member.pop("topics")
        member["assignment"] = [{"topic": t, "partitions": sorted(ps)} for t, ps in sorted(by_topic.items())]
        member["assigned_partitions"] = sum(len(ps) for ps in by_topic.values())
    return list(members.values())

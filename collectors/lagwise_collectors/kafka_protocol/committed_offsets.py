"""OffsetFetch: what many groups have committed, by few requests and without an object for each group-partition."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitBlock, CommitColumns
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, owners
from lagwise_collectors.kafka_protocol.client import REFUSALS, Answer, ProtocolClient
from lagwise_collectors.kafka_protocol.connection import trouble_of_code
from lagwise_collectors.kafka_protocol.offset_messages import OFFSET_FETCH
from lagwise_collectors.kafka_protocol.schema import Row
from lagwise_collectors.protocol import ErrorTally

#: The first version with several groups in a request (KIP-709).
_BATCHED = 8
#: Groups in a request: with 10,000 partitions in each, the answer has 40 MB, of the 100 MB that one may have.
_GROUPS_PER_REQUEST = 200


def read_commits(
    client: ProtocolClient, groups: Sequence[KafkaGroup], errors: ErrorTally, clock: Callable[[], datetime]
) -> CommitColumns:
    """Commits of the groups that could be described. A group that cannot be read gets an ``error``.

    Raises KafkaTrouble, before anything is noted, where the broker does not go together with our requests.
    """
    readable = [group for group in groups if group.error is None]
    commits = CommitColumns()
    if not readable:
        return commits
    answers = _answers(client, [group.name for group in readable])
    for _, answer in answers.values():
        if isinstance(answer, KafkaTrouble) and answer.kind in REFUSALS:
            raise answer
    for group in readable:
        answer = answers[group.name][1]
        if not isinstance(answer, KafkaTrouble):
            owned = owners(group.members)
            commits.add_group(group.name, owned, _block(group.name, answer["topics"], errors))
        elif answer.kind != "group_gone":
            group.error = answer.kind
            errors.note(answer.kind, f"committed offsets of group {group.name}: {answer}")
    is_any_read = any(not isinstance(answer, KafkaTrouble) for _, answer in answers.values())
    if is_any_read and client.seconds_since_answer is not None:
        commits.read_at = clock() - timedelta(seconds=client.seconds_since_answer)
    return commits


def _answers(client: ProtocolClient, names: list[str]) -> dict[str, tuple[int, Answer]]:
    deadline = client.deadline()
    is_batched = client.version_of(OFFSET_FETCH, deadline) >= _BATCHED
    return client.ask_coordinators(
        OFFSET_FETCH, names, _request, _parts, deadline, most=_GROUPS_PER_REQUEST if is_batched else 1
    )


def _request(names: list[str]) -> dict[str, Any]:
    """For all versions: those before KIP-709 have room for one group only, which is the only one then."""
    groups = [{"group_id": name, "member_id": None, "member_epoch": -1, "topics": None} for name in names]
    return {"groups": groups, "group_id": names[0], "topics": None, "require_stable": False}


def _parts(answer: Row) -> list[Row]:
    groups: list[Row] | None = answer["groups"]
    return [answer] if groups is None else groups


def _block(group: str, found: Row, errors: ErrorTally) -> CommitBlock:
    """The columns of a group's answer without what has no offset."""
    topics, rows, columns = found["name"], found["rows"], found["partitions"]
    partition, committed, metadata = columns["partition_index"], columns["committed_offset"], columns["metadata"]
    epoch = columns["committed_leader_epoch"]
    if epoch is None:
        epoch = np.full(len(partition), NONE, np.int32)
    failed = columns["error_code"] != 0
    kept = ~failed & (committed > NONE)
    if not kept.all():
        of_rows = np.repeat(np.arange(len(topics)), rows)
        for row in failed.nonzero()[0].tolist():
            what = f"committed offset of group {group} on {topics[of_rows[row]]}[{partition[row]}]"
            trouble = trouble_of_code(int(columns["error_code"][row]), None, what)
            errors.note(trouble.kind, str(trouble))
        rows = np.bincount(of_rows[kept], minlength=len(topics)).tolist()
        partition, committed, epoch = partition[kept], committed[kept], epoch[kept]
        if metadata is not None:
            metadata = [text for text, is_kept in zip(metadata, kept.tolist(), strict=True) if is_kept]
    if metadata is not None:
        # Clients in C commit the zero byte at the end of their text as well.
        metadata = [text and (text.partition("\0")[0] or None) for text in metadata]
    return CommitBlock(group, topics, rows, partition, committed, epoch, metadata)

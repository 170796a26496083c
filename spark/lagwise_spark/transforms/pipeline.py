"""The transforms in their order: from minutes and the latest sample to statuses. Replay and the live tick share it."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from lagwise_spark.frames import materialised
from lagwise_spark.transforms.evidence import Known, evidence
from lagwise_spark.transforms.judge import judge
from lagwise_spark.transforms.ownership import group_facts
from lagwise_spark.transforms.pace import pace
from lagwise_spark.transforms.time_lag import resets, topic_histories


@dataclass(frozen=True, slots=True)
class Inputs:
    """What statuses are made of. ``minutes`` and ``watermark_minutes`` reach back over an hour and to where ``days``
    ends, ``groups`` over the shortest window, ``events`` as far as they are kept; ``commits``, ``watermarks`` and
    ``members`` are the latest sample's; ``topics`` the newest configuration of each topic; ``previous`` the last
    round's statuses, ``objectives`` the lag objectives of groups that have one of their own."""

    contexts: DataFrame
    minutes: DataFrame
    days: DataFrame
    watermark_minutes: DataFrame
    commits: DataFrame
    watermarks: DataFrame
    groups: DataFrame
    members: DataFrame
    events: DataFrame
    topics: DataFrame
    previous: DataFrame
    objectives: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Statuses:
    """``partitions`` are rows of `partition_status` (and ``previous_status``), ``groups`` one row per group."""

    partitions: DataFrame
    groups: DataFrame


def statuses(inputs: Inputs) -> Statuses:
    """The statuses of every group-partition, each as of its cluster's latest sample."""
    facts = materialised(group_facts(inputs.groups, inputs.members, inputs.events, inputs.contexts))
    known_resets = materialised(resets(inputs.watermark_minutes))
    known = Known(
        contexts=inputs.contexts,
        commits=inputs.commits,
        watermarks=inputs.watermarks,
        members=inputs.members,
        pace=pace(inputs.minutes, inputs.days, known_resets, inputs.contexts),
        histories=topic_histories(inputs.watermark_minutes, known_resets, inputs.topics, inputs.contexts),
        group_facts=facts,
        topics=inputs.topics,
        previous=inputs.previous,
        objectives=inputs.objectives,
    )
    return Statuses(materialised(judge(evidence(known))), facts)

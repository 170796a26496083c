"""The analysis layer's tables about capacity: produce rates and forecasts, observed consumption, verdict and advice."""

import pyarrow as pa

from lagwise.tables.keys import OF_GROUP_TOPIC, OF_TOPIC
from lagwise.tables.schema import BOOLEAN, FLOAT, INT32, INT64, TEXT, TIMESTAMP, Column, Table, list_of

#: Single precision holds every rounded rate.
MINUTE_RATES = pa.list_(pa.float32())

PARTITION_RECORDS = list_of(partition=INT32, records=INT64)

TOPIC_HOURS = Table(
    "topic_hours",
    "analysis",
    "topic and hour: the records produced, and how the minutes of the hour differed",
    (
        *OF_TOPIC,
        Column("hour", TIMESTAMP, "start of the hour", nullable=False),
        Column("partitions", INT32, "partitions that were sampled in the hour", nullable=False),
        Column("minutes", INT32, "minutes in which every one of them was sampled: only these count", nullable=False),
        Column("records", INT64, "records written in these minutes", nullable=False),
        Column("seconds", FLOAT, "time from sample to sample that these minutes cover", nullable=False),
        Column("max_rate_per_second", FLOAT, "highest rate of any of these minutes", nullable=False),
        Column("max_at", TIMESTAMP, "that minute", nullable=False),
        Column(
            "minute_rates_per_second",
            MINUTE_RATES,
            "the rate of each of the 60 minutes, rounded up by less than 1 %; null is not known. A step from sample to "
            "sample that is longer than a minute gives all minutes that it covers its rate",
            nullable=False,
        ),
        Column("partition_records", PARTITION_RECORDS, "the records by partition, those with none as well", False),
    ),
    clock="hour",
)

OBJECTIVE_RATES = list_of(
    objective_seconds=FLOAT, rate_per_second=FLOAT, high_per_second=FLOAT, start=TIMESTAMP, until=TIMESTAMP
)

FORECASTS = Table(
    "forecasts",
    "analysis",
    "topic and hour ahead (day ahead beyond two weeks), as forecast at `made_at`: the newest counts",
    (
        *OF_TOPIC,
        Column("made_at", TIMESTAMP, "end of the last hour that it knew", nullable=False),
        Column("at", TIMESTAMP, "start of the hour or day", nullable=False),
        Column("hours", INT32, "1 is an hour, 24 a day", nullable=False),
        Column("produce_rate_per_second", FLOAT, "mean rate of the hour, or of the day's mean hour", nullable=False),
        Column("low_per_second", FLOAT, "lower end of the 90 % interval of an hour's mean rate", nullable=False),
        Column("high_per_second", FLOAT, "upper end of it", nullable=False),
        Column("busiest_per_second", FLOAT, "mean rate of the busiest hour, which is the hour itself", nullable=False),
        Column("busiest_high_per_second", FLOAT, "upper end of its 90 % interval", nullable=False),
        Column(
            "peak_per_second",
            FLOAT,
            "highest minute rate of the 24 hours that begin here; null in the hours between, and where it is not known",
        ),
        Column("peak_low_per_second", FLOAT, "lower end of its 90 % interval"),
        Column("peak_high_per_second", FLOAT, "upper end of it"),
    ),
    clock="made_at",
)

DEMAND = Table(
    "demand",
    "analysis",
    "topic, now: the rates it has seen, and the peak to plan for",
    (
        *OF_TOPIC,
        Column("as_of", TIMESTAMP, "end of the last hour that the row knows", nullable=False),
        Column("first_hour", TIMESTAMP, "first hour of its history", nullable=False),
        Column("history_hours", INT32, "hours with samples since then", nullable=False),
        Column("minutes", INT64, "minutes whose rate is known: what the rates rest on", nullable=False),
        Column("peak_per_second", FLOAT, "highest minute rate of the history", nullable=False),
        Column("peak_at", TIMESTAMP, "when that was", nullable=False),
        Column("p50_per_second", FLOAT, "half of the minutes had at most this rate; to within 1 %", nullable=False),
        Column("p95_per_second", FLOAT, "95 of 100 minutes had at most this rate; to within 1 %", nullable=False),
        Column("p99_per_second", FLOAT, "99 of 100 minutes had at most this rate; to within 1 %", nullable=False),
        Column("busy_hour_per_second", FLOAT, "mean rate that 99.5 % of the hours did not exceed", nullable=False),
        Column(
            "objective_rates",
            OBJECTIVE_RATES,
            "for lag objectives from 0 to a day: the least capacity (records per second) with which, in the recorded "
            "minutes, no record would have got older than the objective, the upper end of the 90 % interval of what a "
            "week to come takes, and the stretch of time that decides; empty with less than two days of known minutes",
            nullable=False,
        ),
        Column("growth_per_month", FLOAT, "growth in 30 days as a share of the mean rate; null below 4 weeks"),
        Column("growth_low_per_month", FLOAT, "lower end of its 90 % interval"),
        Column("growth_high_per_month", FLOAT, "upper end of its 90 % interval"),
        Column("horizon_days", INT32, "how far ahead is planned", nullable=False),
        Column("forecast_peak_per_second", FLOAT, "highest minute rate to expect in the last week before then"),
        Column("forecast_peak_low_per_second", FLOAT, "lower end of its 90 % interval"),
        Column("forecast_peak_high_per_second", FLOAT, "upper end of its 90 % interval"),
        Column("tested_days", FLOAT, "how far ahead the forecast was tested against the topic's own history"),
        Column("models", TEXT, "the models of the hourly rates by their weights, the heaviest first"),
        Column("mase", FLOAT, "their mean error there, in units of the change from week to week"),
        Column("baseline_mase", FLOAT, "the seasonal-naive baseline's error there"),
        Column("reason", TEXT, "why there is no forecast at the horizon; null where there is one"),
    ),
)

PLANNING_TABLES = (TOPIC_HOURS, FORECASTS, DEMAND)

BLOCKS = list_of(start=TIMESTAMP, end=TIMESTAMP, records=INT64, members=INT32)

_READER = (
    *OF_GROUP_TOPIC,
    Column("member", TEXT, "client id (host) of one member; null is the whole group"),
)

THROUGHPUT = Table(
    "throughput",
    "analysis",
    "group, topic and hour, and per member where it had a backlog: what was read, and for how long under a backlog",
    (
        *_READER,
        Column("hour", TIMESTAMP, "start of the UTC hour", nullable=False),
        Column("members", INT32, "members that owned partitions of it at the end of the hour; null is not known"),
        Column("records", INT64, "records committed in the hour; null for a member"),
        Column("share_of_group", FLOAT, "the topic's part in what the group committed, 0 to 1"),
        Column("best_at", TIMESTAMP, "start of the five minutes in which most was committed; null for a member"),
        Column("best_rate_per_second", FLOAT, "records per second then, at least; null for a member"),
        Column(
            "blocks",
            BLOCKS,
            "times of whole commit cadences throughout which every partition being read had a backlog: records "
            "committed, and by how many members",
            nullable=False,
        ),
    ),
    clock="hour",
)

OBSERVED_CAPACITY = Table(
    "observed_capacity",
    "analysis",
    "group and topic, and per member that ever had a backlog, now: what it was seen to be able to do",
    (
        *_READER,
        Column("as_of", TIMESTAMP, "time of the cluster's latest sample when this was estimated", nullable=False),
        Column("rate_per_second", FLOAT, "records per second it can do; null is undecided"),
        Column("rate_low_per_second", FLOAT, "lower end of its 95 % confidence interval"),
        Column("rate_high_per_second", FLOAT, "upper end of its 95 % confidence interval"),
        Column(
            "reason",
            TEXT,
            "why it is undecided: never_saturated, too_little, imprecise, unsteady, exceeded or shared; else null",
        ),
        Column("sentence", TEXT, "the estimate with its evidence, or why there is none", nullable=False),
        Column("load_test", TEXT, "the smallest load test that would decide it; null where none is needed"),
        Column("saturated_seconds", FLOAT, "time with a backlog that it rests on", nullable=False),
        Column("blocks", INT32, "blocks of whole cadences that this time was cut into: the sample size", False),
        Column("episodes", INT32, "on how many occasions", nullable=False),
        Column("at_least_per_second", FLOAT, "lower bound: the most it did in five minutes, backlog or not"),
        Column("members", INT32, "members that it is for: today's; null is not known"),
        Column("is_scaled", BOOLEAN, "observed with other numbers of members and taken in proportion", nullable=False),
        Column("seconds_per_message", FLOAT, "T1 + T2 of one thread, a member taken as one thread; null is unknown"),
        Column("measured_from", TIMESTAMP, "start of the first block"),
        Column("measured_until", TIMESTAMP, "end of the last block"),
        Column("changed_at", TIMESTAMP, "first block since it changed; null where it did not"),
        Column("changed_from_per_second", FLOAT, "what it was before that"),
        Column("missing_seconds", FLOAT, "time with a backlog that would probably decide it; 0 where it is"),
    ),
)

INPUTS = list_of(name=TEXT, value=FLOAT, source=TEXT, samples=INT64, measured_at=TIMESTAMP)

CAPACITY = Table(
    "capacity",
    "analysis",
    "group and topic, now: verdict, advice, and what they rest on",
    (
        *OF_GROUP_TOPIC,
        Column("as_of", TIMESTAMP, "time of the sample it was worked out at", nullable=False),
        Column("verdict", TEXT, "enough, tight, short, oversized or undecided", nullable=False),
        Column("sentence", TEXT, "why, in one or two sentences with numbers", nullable=False),
        Column(
            "is_exceeded",
            BOOLEAN,
            "whether today's demand is above what can be done, the slack kept free; null is undecided",
        ),
        Column("enough_until", TIMESTAMP, "when the forecast goes above what can be done; null is not within it"),
        Column("partitions", INT32, "partitions of the topic", nullable=False),
        Column("members", INT32, "members that own any of them", nullable=False),
        Column("nodes", INT32, "hosts of these members", nullable=False),
        Column(
            "hottest_share",
            FLOAT,
            "share of the hottest partition in the busy hours of a week, 0 to 1; null is unknown: too few records",
        ),
        Column("lag", INT64, "unread records"),
        Column("produce_rate_per_second", FLOAT, "records written per second, now"),
        Column("peak_rate_per_second", FLOAT, "highest minute rate of the history"),
        Column("forecast_peak_rate_per_second", FLOAT, "highest minute rate at the horizon; null: no forecast"),
        Column("size_by", TEXT, "what verdict and advice go by: objective or peak", nullable=False),
        Column(
            "demand_per_second",
            FLOAT,
            "what must be done today by `size_by`: what the objective takes, or the highest minute; null is not known",
        ),
        Column("forecast_demand_per_second", FLOAT, "its highest mean in the whole forecast; null: no forecast"),
        Column("forecast_demand_high_per_second", FLOAT, "its highest upper end (of 90 % intervals) in the forecast"),
        Column("objective_seconds", FLOAT, "the group's lag objective"),
        Column(
            "objective_rate_per_second",
            FLOAT,
            "least capacity with which it would have been kept in the recorded minutes; null: too few are recorded",
        ),
        Column(
            "planned_objective_rate_per_second",
            FLOAT,
            "what is planned with: the upper end of what a week takes, scaled by that of the forecast, up to the "
            "highest minute so far or forecast",
        ),
        Column("member_rate_per_second", FLOAT, "what one member can do; null is not known"),
        Column("unit", TEXT, "what is sized: node, member, or subtask (of a Flink job)", nullable=False),
        Column("capacity_low_per_second", FLOAT, "what all members can do with this skew: lower end, or bound"),
        Column("capacity_high_per_second", FLOAT, "the same: upper end; null where only the lower bound is known"),
        Column(
            "capacity_source",
            TEXT,
            "saturation, busy_time, consume_rt, probe, throughput (a lower bound) or none",
            nullable=False,
        ),
        Column("t1_seconds", FLOAT, "T1 that was sized with (the whole time per message where T2 is not known)"),
        Column("t2_seconds", FLOAT, "T2 that was sized with; null where it is not known"),
        Column("cores", FLOAT, "cores of a node"),
        Column("threads_per_node", INT32, "threads at work on a node, by the probe"),
        Column("max_threads_per_node", INT32, "most threads that sizing may give a node"),
        Column("concurrency", TEXT, "consumer-per-thread or pool"),
        Column(
            "advised_nodes",
            INT32,
            "nodes (or members, or subtasks), spare ones included; null where nothing can be advised",
        ),
        Column("advised_threads_per_node", INT32, "threads on each"),
        Column("advised_partitions", INT32, "partitions of the topic"),
        Column(
            "slots_held",
            INT32,
            "of a Flink job: task slots that the vertex which bounds it and those that share slots with it hold; null "
            "is not known",
        ),
        Column(
            "slots_free",
            INT32,
            "of a Flink job: task slots of its cluster that no job has; null is not known, or the cluster starts "
            "TaskManagers on demand",
        ),
        Column("binds", TEXT, "what binds: cpu, waiting, time, partitions, skew, ordering, downstream or demand"),
        Column("change", TEXT, "the cheapest change that helps, in a sentence; null where none is needed"),
        Column("advice", TEXT, "the advice in sentences; null where not enough is known to ask sizing"),
        Column("confidence", TEXT, "high, medium, low or none: how much it rests on", nullable=False),
        Column("inputs", INPUTS, "every number that went in: where from, from how many samples, how old", False),
    ),
)

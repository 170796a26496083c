"""What consumers and jobs tell of their work: a part of the raw layer."""

import pyarrow as pa

from lagwise.tables.schema import SAMPLE, TIMESTAMP, Column, Table

SERVICE_TIMES = Table(
    "service_times",
    "raw",
    "measurement of what a message costs (a restarted collector may write the last ones again: take distinct ones)",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the commit that tells it was read", nullable=False),
        Column(
            "measured_at",
            TIMESTAMP,
            "when the measurement ended, by the clock of who measured (at most `sampled_at`); where it was not told, "
            "`sampled_at`",
            nullable=False,
        ),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("partition", pa.int32(), "the lowest partition whose commit, or owner, tells it", nullable=False),
        Column("member_id", pa.string(), "member that owned this partition; null is nobody"),
        Column("client_id", pa.string(), "client.id of that member"),
        Column("host", pa.string(), "address that member connects from"),
        Column(
            "source", pa.string(), "where it comes from: probe (docs/probe.md), consume_rt (RocketMQ)", nullable=False
        ),
        Column(
            "t1_seconds",
            pa.float64(),
            "T1, mean time of a message spent waiting for something outside; null where only the whole is known",
        ),
        Column("t2_seconds", pa.float64(), "T2, mean CPU time of a message; null where only the whole is known"),
        Column("seconds_per_message", pa.float64(), "all of a message's time where only that is known; else null"),
        Column(
            "run_queue_seconds",
            pa.float64(),
            "Tq, mean time of a message runnable but without a core; null is not measured, and then T1 holds it",
        ),
        Column(
            "lock_wait_seconds",
            pa.float64(),
            "how long a thread waited for the interpreter lock each time it wanted it; T1 holds these waits",
        ),
        Column(
            "t1_doubt",
            pa.string(),
            "why T1 is only an upper bound: run_queue or interpreter_lock is in it; null is no doubt",
        ),
        Column("messages", pa.int64(), "how many messages the means are of", nullable=False),
        Column("threads", pa.int32(), "how many threads handled them: the concurrency"),
        Column("window_seconds", pa.float64(), "how long was measured"),
        Column("cores", pa.float64(), "cores that the measuring process may use"),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

VERTICES = pa.list_(
    pa.struct(
        [
            pa.field("name", pa.string()),
            pa.field("parallelism", pa.int32()),
            pa.field("slots_held", pa.int32()),
            pa.field("busy_share", pa.float64()),
            pa.field("backpressured_share", pa.float64()),
            pa.field("idle_share", pa.float64()),
            pa.field("records_in_per_second", pa.float64()),
            pa.field("records_out_per_second", pa.float64()),
        ]
    )
)

JOBS = Table(
    "jobs",
    "raw",
    "running job of an engine and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the committed offsets had been read", nullable=False),
        Column("group", pa.string(), "consumer group that the job is shown as", nullable=False),
        Column("source", pa.string(), "the source in `external_offsets` that tells of it", nullable=False),
        Column("job_id", pa.string(), "id of the job in its engine", nullable=False),
        Column("job", pa.string(), "name of the job", nullable=False),
        Column("checkpoint_duration_seconds", pa.float64(), "how long the last completed checkpoint took"),
        Column("checkpoints_completed", pa.int64(), "checkpoints that it has completed since it was started"),
        Column("checkpoints_failed", pa.int64(), "checkpoints that have failed since then"),
        Column(
            "slots_total",
            pa.int32(),
            "task slots of its cluster; null is not known, and 0 is what a cluster tells that starts TaskManagers on "
            "demand and has none",
        ),
        Column("slots_free", pa.int32(), "those of them that no job has; null is not known"),
        Column(
            "vertices",
            VERTICES,
            "its vertices from the source on: subtasks, task slots that their slot sharing group holds, and shares of "
            "the time of all subtasks and records between the look before and this one; null where there was none "
            "before",
            nullable=False,
        ),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

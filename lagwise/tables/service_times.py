"""What consumers and jobs tell of their work: a part of the raw layer."""

import pyarrow as pa

from lagwise.tables.schema import SAMPLE, TIMESTAMP, Column, Table

SERVICE_TIMES = Table(
    "service_times",
    "raw",
    "measurement of the time per message (a restarted collector may write the last ones again: select distinct rows)",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the commit that carries it was read", nullable=False),
        Column(
            "measured_at",
            TIMESTAMP,
            "when the measurement ended, by the clock of who measured (at most `sampled_at`); where it is unknown, "
            "`sampled_at`",
            nullable=False,
        ),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("partition", pa.int32(), "lowest partition whose commit or owner reported it", nullable=False),
        Column("member_id", pa.string(), "member that owned this partition; null is none"),
        Column("client_id", pa.string(), "client.id of that member"),
        Column("host", pa.string(), "address that member connects from"),
        Column(
            "source",
            pa.string(),
            "origin of the measurement: probe (docs/probe.md) or consume_rt (RocketMQ)",
            nullable=False,
        ),
        Column(
            "t1_seconds",
            pa.float64(),
            "T1, mean time per message spent waiting for something outside; null if only the total is known",
        ),
        Column("t2_seconds", pa.float64(), "T2, mean CPU time per message; null if only the total is known"),
        Column("seconds_per_message", pa.float64(), "total time per message, if only that is known; otherwise null"),
        Column(
            "run_queue_seconds",
            pa.float64(),
            "Tq, mean time per message spent runnable but without a core; null is not measured (T1 then includes it)",
        ),
        Column(
            "lock_wait_seconds",
            pa.float64(),
            "time a thread waited for the interpreter lock, each time it acquired it; T1 includes it",
        ),
        Column(
            "t1_doubt",
            pa.string(),
            "why T1 is only an upper bound: it includes run_queue or interpreter_lock; null is no doubt",
        ),
        Column("messages", pa.int64(), "number of messages measured", nullable=False),
        Column("threads", pa.int32(), "number of threads that handled them (the concurrency)"),
        Column("window_seconds", pa.float64(), "length of the measurement"),
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
    "running job of an engine, per sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the committed offsets had been read", nullable=False),
        Column("group", pa.string(), "consumer group under which the job is shown", nullable=False),
        Column("source", pa.string(), "the source in `external_offsets` that reports it", nullable=False),
        Column("job_id", pa.string(), "id of the job in its engine", nullable=False),
        Column("job", pa.string(), "name of the job", nullable=False),
        Column("checkpoint_duration_seconds", pa.float64(), "how long the last completed checkpoint took"),
        Column("checkpoints_completed", pa.int64(), "checkpoints completed since the job started"),
        Column("checkpoints_failed", pa.int64(), "checkpoints failed since the job started"),
        Column(
            "slots_total",
            pa.int32(),
            "task slots of its cluster; null is not known, and 0 is what a cluster tells that starts TaskManagers on "
            "demand and has none",
        ),
        Column("slots_free", pa.int32(), "free task slots; null is not known"),
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

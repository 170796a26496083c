"""The raw layer's tables of what consumers and jobs report about their work."""

from lagwise.tables.keys import GROUP, SAMPLE, TOPIC
from lagwise.tables.schema import FLOAT, INT32, INT64, TEXT, TIMESTAMP, Column, Table, list_of

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
        GROUP,
        TOPIC,
        Column("partition", INT32, "lowest partition whose commit or owner reported it", nullable=False),
        Column("member_id", TEXT, "member that owned this partition; null is none"),
        Column("client_id", TEXT, "client.id of that member"),
        Column("host", TEXT, "address that member connects from"),
        Column(
            "source", TEXT, "origin of the measurement: probe (docs/probe.md) or consume_rt (RocketMQ)", nullable=False
        ),
        Column(
            "t1_seconds",
            FLOAT,
            "T1, mean time per message spent waiting for something outside; null if only the total is known",
        ),
        Column("t2_seconds", FLOAT, "T2, mean CPU time per message; null if only the total is known"),
        Column("seconds_per_message", FLOAT, "total time per message, if only that is known; otherwise null"),
        Column(
            "run_queue_seconds",
            FLOAT,
            "Tq, mean time per message spent runnable but without a core; null is not measured (T1 then includes it)",
        ),
        Column(
            "lock_wait_seconds",
            FLOAT,
            "time a thread waited for the interpreter lock, each time it acquired it; T1 includes it",
        ),
        Column(
            "t1_doubt",
            TEXT,
            "why T1 is only an upper bound: it includes run_queue or interpreter_lock; null is no doubt, as where one "
            "thread alone works",
        ),
        Column(
            "process_cpu_seconds",
            FLOAT,
            "mean CPU time of the whole process per message: T2 and everything outside handlers; null is not measured",
        ),
        Column("messages", INT64, "number of messages measured", nullable=False),
        Column("threads", INT32, "number of threads that handled them (the concurrency)"),
        Column("window_seconds", FLOAT, "length of the measurement"),
        Column("cores", FLOAT, "cores that the measuring process may use"),
    ),
    clock="sampled_at",
)

VERTICES = list_of(
    name=TEXT,
    parallelism=INT32,
    slots_held=INT32,
    busy_share=FLOAT,
    backpressured_share=FLOAT,
    idle_share=FLOAT,
    records_in_per_second=FLOAT,
    records_out_per_second=FLOAT,
)

JOBS = Table(
    "jobs",
    "raw",
    "running job of an engine, per sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the committed offsets had been read", nullable=False),
        Column("group", TEXT, "consumer group under which the job is shown", nullable=False),
        Column("source", TEXT, "the source in `external_offsets` that reports it", nullable=False),
        Column("job_id", TEXT, "id of the job in its engine", nullable=False),
        Column("job", TEXT, "name of the job", nullable=False),
        Column("checkpoint_duration_seconds", FLOAT, "how long the last completed checkpoint took"),
        Column("checkpoints_completed", INT64, "checkpoints completed since the job started"),
        Column("checkpoints_failed", INT64, "checkpoints failed since the job started"),
        Column(
            "slots_total",
            INT32,
            "task slots of its cluster; null is not known; 0 is reported by a cluster that starts TaskManagers on "
            "demand and has none",
        ),
        Column("slots_free", INT32, "free task slots; null is not known"),
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
)

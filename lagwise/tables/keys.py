"""The columns that say what a row is about: they mean the same in every table."""

from lagwise.tables.schema import INT32, TEXT, Column

CLUSTER = Column("cluster", TEXT, "name of the cluster in the configuration", nullable=False)
GROUP = Column("group", TEXT, "consumer group", nullable=False)
TOPIC = Column("topic", TEXT, "topic", nullable=False)
PARTITION = Column("partition", INT32, "partition", nullable=False)

#: The first columns of every table whose rows belong to a sample.
SAMPLE = (Column("sample_id", TEXT, "the collection run this row belongs to", nullable=False), CLUSTER)
OF_GROUP = (CLUSTER, GROUP)
OF_TOPIC = (CLUSTER, TOPIC)
OF_TOPIC_PARTITION = (*OF_TOPIC, PARTITION)
OF_GROUP_TOPIC = (*OF_GROUP, TOPIC)
OF_GROUP_PARTITION = (*OF_GROUP_TOPIC, PARTITION)

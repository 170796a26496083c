"""Kafka's protocol, as far as librdkafka does not speak it: groups of every type (docs/adr/0050-own-protocol-path.md).

From below: ``wire`` reads and writes primitive types, ``schema`` whole messages by their declarations in ``messages``
and ``group_messages``. ``connection`` sends them, as ``security`` and ``sasl`` say; ``client`` finds the broker that
knows the answer; ``group_listing`` and ``group_types`` ask for groups.
"""

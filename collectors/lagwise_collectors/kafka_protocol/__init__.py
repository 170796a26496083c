"""Kafka's protocol, as far as a sample needs it (docs/adr/0050-own-protocol-path.md).

From below: ``wire`` reads and writes primitive types, ``schema`` and ``columns`` whole messages by their declarations
in ``messages``, ``group_messages``, ``offset_messages`` and ``topic_messages``. ``connection`` sends them, as
``security`` and ``sasl`` say; ``client`` finds the broker that knows the answer. The other modules ask: for groups
(``group_listing``, ``consumer_groups``, ``group_types``), offsets (``committed_offsets``, ``watermarks``) and
``topics``.
"""

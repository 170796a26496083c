"""The ``server.properties`` of the sandbox's broker: one KRaft process that is broker and controller."""

from collections.abc import Mapping
from dataclasses import dataclass

#: The users of secured servers and their passwords. They guard throw-away servers on loopback: nothing secret.
ADMIN = "admin"
MONITOR = "monitor"
PASSWORDS = {ADMIN: "admin-sandbox", MONITOR: "monitor-sandbox"}


PropertyValue = str | int | bool


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one broker."""

    client: int
    controller: int


def properties(ports: Ports, logs: str, *, secured: bool, extra: Mapping[str, PropertyValue]) -> str:
    """The text of the properties file; ``extra`` wins over everything.

    ``secured`` means SASL/PLAIN on every listener and Kafka's StandardAuthorizer, which denies what no ACL allows:
    ``admin`` may do everything, ``monitor`` nothing until somebody grants it.
    """
    protocol = "SASL_PLAINTEXT" if secured else "PLAINTEXT"
    settings: dict[str, PropertyValue] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "listeners": f"CLIENT://127.0.0.1:{ports.client},CONTROLLER://127.0.0.1:{ports.controller}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{ports.client}",
        "listener.security.protocol.map": f"CLIENT:{protocol},CONTROLLER:{protocol}",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": logs,
        "auto.create.topics.enable": False,
        # One broker can hold one replica.
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # Few partitions of the internal topics: each costs files, and a test creates them anew each time.
        "offsets.topic.num.partitions": 8,
        "transaction.state.log.num.partitions": 2,
        "share.coordinator.state.topic.num.partitions": 2,
        # Groups come and go within seconds here.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "group.consumer.min.session.timeout.ms": 2000,
        "group.consumer.session.timeout.ms": 6000,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.consumer.heartbeat.interval.ms": 1000,
        # Retention must be seen at work within two minutes; the first check would otherwise come after 30 s.
        "log.retention.check.interval.ms": 3000,
        "log.initial.task.delay.ms": 1000,
        "log.segment.delete.delay.ms": 1000,
        # A small machine, shared with Spark. The cleaner's default buffer alone would be 128 MB of heap.
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
        "log.index.size.max.bytes": 1024 * 1024,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        "group.coordinator.threads": 1,
        "share.coordinator.threads": 1,
        "controlled.shutdown.enable": False,  # there is no other broker to hand leadership to
    }
    if secured:
        users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
        login = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{ADMIN}" password="{PASSWORDS[ADMIN]}" {users};'
        )
        settings |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": login,
            "listener.name.controller.plain.sasl.jaas.config": login,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN}",
        }
    return properties_text({**settings, **extra})


def librdkafka_login(user: str, password: str | None = None) -> dict[str, str]:
    """Client settings that sign in to a secured broker as ``user``, with its right password unless given another."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS.get(user, "") if password is None else password,
    }


#: Warnings and errors on stdout, which goes to the broker's log file.
LOG4J_PROPERTIES = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %c{1}: %m%n%throwable{short.message}
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""


def properties_text(settings: Mapping[str, PropertyValue]) -> str:
    """Settings as a Java properties file."""
    return "".join(f"{key}={_text(value)}\n" for key, value in settings.items())


def _text(value: PropertyValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("\\", "\\\\").replace("\n", "\\n")

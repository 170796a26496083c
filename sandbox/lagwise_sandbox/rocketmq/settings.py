"""The settings of the sandbox's name server and brokers: small, on loopback, quick where RocketMQ takes its time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lagwise_sandbox.server_properties import ADMIN, PASSWORDS, PropertyValue, properties_text


@dataclass(frozen=True, slots=True)
class BrokerInstance:
    """The settings that differ from broker to broker. A broker also listens on the port two below its own."""

    name: str
    port: int
    replication_port: int
    store: Path


def name_server(port: int) -> str:
    """The name server's properties."""
    return properties_text({"listenPort": port, "bindAddress": "127.0.0.1"})


def broker(instance: BrokerInstance, name_servers: str, *, secured: bool, extra: Mapping[str, PropertyValue]) -> str:
    """A broker's properties; ``extra`` wins over everything."""
    settings: dict[str, PropertyValue] = {
        "brokerClusterName": "sandbox",
        "brokerName": instance.name,
        "brokerId": 0,
        "brokerRole": "ASYNC_MASTER",
        "namesrvAddr": name_servers,
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": instance.port,
        "haListenPort": instance.replication_port,
        "storePathRootDir": str(instance.store),
        "storePathCommitLog": str(instance.store / "commitlog"),
        "mappedFileSizeCommitLog": 64 * 1024 * 1024,
        "autoCreateTopicEnable": False,
        "flushConsumerOffsetInterval": 1000,
        # Retries come within seconds: the third level is the first that is used, 10 s by default.
        "messageDelayLevel": " ".join(f"{seconds}s" for seconds in range(1, 19)),
        # A machine that is busy must not make the broker refuse messages that waited for 200 ms.
        "waitTimeMillsInSendQueue": 10_000,
        "osPageCacheBusyTimeOutMills": 10_000,
        # Each flush compares the timer wheel (37 MB) byte by byte, by default every second: a third of a core.
        "timerFlushIntervalMs": 60_000,
        # A thread of the broker spins between two flushes of this, by default every 3 s.
        "transactionMetricFlushInterval": 200,
        # The disk is the machine's and not the sandbox's: however full it is, nothing is deleted or refused.
        "diskMaxUsedSpaceRatio": 95,
    }
    if secured:
        login = {"accessKey": ADMIN, "secretKey": PASSWORDS[ADMIN]}
        auth = "org.apache.rocketmq.auth"
        settings |= {
            "authenticationEnabled": True,
            "authenticationProvider": f"{auth}.authentication.provider.DefaultAuthenticationProvider",
            "authenticationMetadataProvider": f"{auth}.authentication.provider.LocalAuthenticationMetadataProvider",
            "initAuthenticationUser": json.dumps({"username": ADMIN, "password": PASSWORDS[ADMIN]}),
            "innerClientAuthenticationCredentials": json.dumps(login),
            "authorizationEnabled": True,
            "authorizationProvider": f"{auth}.authorization.provider.DefaultAuthorizationProvider",
            "authorizationMetadataProvider": f"{auth}.authorization.provider.LocalAuthorizationMetadataProvider",
        }
    return properties_text({**settings, **extra})


def tools_login(user: str) -> str:
    """The ``conf/tools.yml`` with which ``mqadmin`` signs in."""
    return f"accessKey: {user}\nsecretKey: {PASSWORDS[user]}\n"

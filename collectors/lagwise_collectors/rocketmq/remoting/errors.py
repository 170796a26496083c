"""RocketMQ's errors as the short words of tables, logs and alerts."""

import socket
import ssl

from lagwise_collectors.protocol import Trouble

#: By response code (``org.apache.rocketmq.remoting.protocol.ResponseCode``).
CONSUMER_NOT_ONLINE = 206
UNKNOWN_TOPIC = 17
_KINDS = {
    1: "broker_failed",
    2: "broker_busy",
    3: "not_supported",
    14: "broker_busy",
    16: "not_authorized",
    UNKNOWN_TOPIC: "unknown_topic",
    26: "unknown_group",
    CONSUMER_NOT_ONLINE: "not_online",
    207: "member_timeout",
}

#: What to do about each kind.
ADVICE = {
    "timeout": "nothing answered in time: check the addresses, firewalls, and whether the broker's brokerIP1 can be "
    "reached from here",
    "unreachable": "nothing answers there: check the address and port, and that name server and broker are running",
    "host_not_found": "the host name cannot be resolved: check name_servers",
    "tls_failed": "the TLS handshake failed: check the cluster's tls settings, and that the server has TLS on",
    "malformed": "the server does not speak RocketMQ's remoting protocol: check that the port is that of a name server "
    "or broker (not of a proxy or the dashboard)",
    "not_authorized": "authentication or a policy rejects this: check access_key and secret_key, and grant the user "
    "Get and List on Cluster:*, Topic:* and Group:*",
    "setting_refused": "a setting of the cluster cannot be used",
    "no_broker": "the name servers know no broker: check that the brokers' namesrvAddr names them",
}


class RocketmqTrouble(Trouble):
    """A request, or a whole server, that failed: ``response_code`` is RocketMQ's where it answered."""

    def __init__(self, kind: str, detail: str, response_code: int | None = None) -> None:
        super().__init__(kind, detail)
        self.response_code = response_code


class MalformedResponse(RocketmqTrouble):
    """Bytes that are no frame, header or body as the protocol has them."""

    def __init__(self, detail: str) -> None:
        super().__init__("malformed", detail)


def trouble_of_response(code: int, remark: str | None, what: str) -> RocketmqTrouble:
    """A response that is an error. The remark may be a stack trace: its first line says it."""
    first = ((remark or "").strip().splitlines() or ["no reason given"])[0]
    return RocketmqTrouble(_KINDS.get(code, f"code_{code}"), f"{what}: {first} (code {code})", code)


def trouble_of_os_error(error: OSError, address: str) -> RocketmqTrouble:
    """What the operating system or TLS says of a connection."""
    if isinstance(error, TimeoutError):
        return RocketmqTrouble("timeout", f"{address} does not answer in time")
    if isinstance(error, ssl.SSLError):
        return RocketmqTrouble("tls_failed", f"{address}: {getattr(error, 'reason', None) or error}")
    if isinstance(error, socket.gaierror):
        return RocketmqTrouble("host_not_found", f"the name of {address} cannot be resolved")
    return RocketmqTrouble("unreachable", f"{address}: {error.strerror or error}")

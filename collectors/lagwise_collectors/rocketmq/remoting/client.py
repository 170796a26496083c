"""The way to a cluster: whichever name server answers, and one connection to each broker, made anew when it ended."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from lagwise.config import RocketmqCluster
from lagwise.platform.errors import ConfigError
from lagwise_collectors.rocketmq.remoting import response_bodies
from lagwise_collectors.rocketmq.remoting.connection import Answer, Connection, ConnectionSettings, body_of, signer_of
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble, trouble_of_os_error
from lagwise_collectors.rocketmq.remoting.frames import Request

#: Brokers that are asked at the same time.
_AT_ONCE = 16
_GET_BROKER_CLUSTER_INFO = 106
_MASTER = 0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RocketmqBroker:
    """A broker name and the server that stands for it: the master, or a slave where there is no master."""

    name: str
    address: str
    is_master: bool
    #: Master and slaves together.
    replicas: int


class RocketmqClient:
    """Everything that is asked of a cluster goes through here. Its methods raise RocketmqTrouble."""

    def __init__(self, cluster: RocketmqCluster) -> None:
        """Connects to nothing yet. Raises ConfigError where a secret or a certificate cannot be read."""
        self.timeout_seconds = cluster.timeout_seconds
        self._reach = ConnectionSettings(cluster.timeout_seconds, _tls_of(cluster), signer_of(cluster))
        self._name_servers = list(cluster.name_server_list)
        self._connections: dict[str, Connection] = {}

    def brokers(self) -> list[RocketmqBroker]:
        """The brokers by name, as the first name server that answers has them.

        Raises the trouble of the last one where none does.
        """
        trouble: RocketmqTrouble | None = None
        for address in list(self._name_servers):
            try:
                (found,) = self.ask_all(address, [Request(_GET_BROKER_CLUSTER_INFO, "listing brokers")])
                brokers = _brokers_of(response_bodies.read(body_of(found)))
            except RocketmqTrouble as error:
                trouble = error
                continue
            self._name_servers.remove(address)
            self._name_servers.insert(0, address)  # the next sample begins with the one that works
            return brokers
        raise trouble or RocketmqTrouble("setting_refused", "no name server is named")

    def ask_all(
        self, address: str, requests: Sequence[Request], *, within_seconds: float | None = None
    ) -> list[Answer]:
        """The answers of one server in the order of the requests, each a frame or its trouble.

        A connection that was made for an earlier sample may have ended meanwhile: then it is made anew, once.
        """
        kept = self._connections.get(address)
        if kept is not None and not kept.broken:
            answers = kept.ask_all(requests, within_seconds=within_seconds)
            if not (kept.broken and all(isinstance(a, RocketmqTrouble) and a.response_code is None for a in answers)):
                return answers
        try:
            connection = self._connections[address] = Connection(address, self._reach)
        except RocketmqTrouble as trouble:
            return [trouble] * len(requests)
        return connection.ask_all(requests, within_seconds=within_seconds)

    def on_each(
        self, brokers: Sequence[RocketmqBroker], do: Callable[[RocketmqBroker], T]
    ) -> dict[str, T | RocketmqTrouble]:
        """What came of doing something on every broker, by its name; one that hangs keeps no other waiting."""

        def tried(broker: RocketmqBroker) -> T | RocketmqTrouble:
            try:
                return do(broker)
            except RocketmqTrouble as trouble:
                return trouble

        if len(brokers) <= 1:
            return {broker.name: tried(broker) for broker in brokers}
        with ThreadPoolExecutor(min(_AT_ONCE, len(brokers))) as pool:
            return dict(zip([b.name for b in brokers], pool.map(tried, brokers), strict=True))

    def close(self) -> None:
        """Drop all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _brokers_of(body: object) -> list[RocketmqBroker]:
    found = []
    for name, entry in response_bodies.mapping(body, "brokerAddrTable").items():
        addresses: Mapping[object, object] = response_bodies.mapping(entry, "brokerAddrs")
        by_id = {response_bodies.whole_of(number, "a broker's id"): address for number, address in addresses.items()}
        if by_id:
            first = min(by_id)
            found.append(RocketmqBroker(str(name), str(by_id[first]), first == _MASTER, len(by_id)))
    return sorted(found, key=lambda broker: broker.name)


def _tls_of(cluster: RocketmqCluster) -> ssl.SSLContext | None:
    tls = cluster.tls
    if not tls.enabled:
        return None
    try:
        context = ssl.create_default_context(cafile=str(tls.ca_file.expanduser()) if tls.ca_file else None)
        if tls.certificate_file is not None:
            key = tls.key_file.expanduser() if tls.key_file else None
            context.load_cert_chain(tls.certificate_file.expanduser(), key)
    except OSError as error:
        what = trouble_of_os_error(error, "a file") if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(f"the certificates of the cluster {cluster.name} cannot be used: {what}") from None
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif not tls.verify_host_name:
        context.check_hostname = False
    return context

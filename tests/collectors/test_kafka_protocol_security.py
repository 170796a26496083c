"""Our own connections sign in to a real broker by every mechanism that they know, over TLS and without."""

import base64
import importlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.sasl import unsecured_token
from lagwise_collectors.kafka_protocol.security import reach_of
from lagwise_sandbox.broker import KafkaBroker
from lagwise_sandbox.server_process import free_ports
from lagwise_sandbox.server_properties import ADMIN, PASSWORDS, librdkafka_login
from tests.collectors.kafka import eventually

_PASSWORD = PASSWORDS[ADMIN]
_LOGIN = "org.apache.kafka.common.security"


class Secure(NamedTuple):
    """A broker with a listener for each security protocol."""

    #: Address of each listener.
    plain: str
    tls: str
    mutual: str
    sasl_tls: str
    #: Its certificate has expired.
    expired: str
    ca: Path
    #: Certificate and key of a client.
    client: Path


@pytest.fixture(scope="module")
def secure(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """A broker of these tests' own (the shared one is asked for, so that what it skips for is skipped here too)."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    write_as_kafka_reads(authority.issue_cert("127.0.0.1"), folder / "server.pem")
    expired = authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) - timedelta(days=1))
    write_as_kafka_reads(expired, folder / "expired.pem")
    first, second, third = (free_ports(0) for _ in range(3))
    addresses = {
        "CLIENT": f"127.0.0.1:{first.client}",
        "CONTROLLER": f"127.0.0.1:{first.controller}",
        "TLS": f"127.0.0.1:{second.client}",
        "MUTUAL": f"127.0.0.1:{second.controller}",
        "BOTH": f"127.0.0.1:{third.client}",
        "EXPIRED": f"127.0.0.1:{third.controller}",
    }
    listeners = {name: f"{name}://{address}" for name, address in addresses.items()}
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    sasl = {
        "plain": f'{_LOGIN}.plain.PlainLoginModule required username="{ADMIN}" password="{_PASSWORD}" {users};',
        "scram-sha-256": f"{_LOGIN}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_LOGIN}.scram.ScramLoginModule required;",
        "oauthbearer": f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{ADMIN}";',
    }
    extra = {
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(at for name, at in listeners.items() if name != "CONTROLLER"),
        "controller.quorum.voters": f"1@{addresses['CONTROLLER']}",
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,TLS:SSL,MUTUAL:SSL,"
        "BOTH:SASL_SSL,EXPIRED:SSL",
        "listener.name.expired.ssl.keystore.location": str(folder / "expired.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        **{f"listener.name.{name}.sasl.enabled.mechanisms": ",".join(sasl).upper() for name in ("client", "both")},
        **{
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config": login
            for listener in ("client", "both")
            for mechanism, login in sasl.items()
        },
        "connections.max.reauth.ms": 1500,
        "super.users": f"User:{ADMIN};User:ANONYMOUS;User:CN=client@example.org",
    }
    with KafkaBroker(first.client, secured=True, extra=extra) as running:
        admin = AdminClient(running.client_settings())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(ADMIN, ScramCredentialInfo(mechanism, 4096), b"scram-sandbox")
            admin.alter_user_scram_credentials([change])[ADMIN].result(20)
        (folder / "scram").write_text("scram-sandbox")
        scram = login("SCRAM-SHA-512", f"${{file:{folder / 'scram'}}}")
        eventually(lambda: signs_in(addresses["CLIENT"], scram))  # the broker has heard of the user
        plain, tls, mutual, sasl_tls, old = (addresses[name] for name in ("CLIENT", "TLS", "MUTUAL", "BOTH", "EXPIRED"))
        yield Secure(plain, tls, mutual, sasl_tls, old, folder / "ca.pem", folder / "client.pem")


def write_as_kafka_reads(certificate: trustme.LeafCert, path: Path) -> None:
    """Key and certificates in one file; of the formats of a key, Kafka knows PKCS 8 only."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(encoded + b"".join(part.bytes() for part in certificate.cert_chain_pems))


def brokers(address: str, settings: Mapping[str, str | int | float | bool]) -> list[int]:
    """Ids of the brokers, over our own connection. Raises KafkaTrouble."""
    with closing(ProtocolClient(Cluster(bootstrap=address, librdkafka=dict(settings), timeout_seconds=10))) as client:
        return client.read_brokers(client.deadline())


def signs_in(address: str, settings: Mapping[str, str | int | float | bool]) -> bool:
    try:
        return bool(brokers(address, settings))
    except KafkaTrouble:
        return False


def login(mechanism: str, password: str, tls: Secure | None = None) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT" if tls is None else "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": ADMIN,
        "sasl.password": password,
        **({} if tls is None else {"ssl.ca.location": str(tls.ca)}),
    }


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    """A reference to the right password of SCRAM."""
    monkeypatch.setenv("LAB_SCRAM_PASSWORD", "scram-sandbox")
    monkeypatch.setenv("LAB_PLAIN_PASSWORD", _PASSWORD)
    monkeypatch.setenv("LAB_WRONG_PASSWORD", "wrong-7245")
    return "${env:LAB_SCRAM_PASSWORD}"


@pytest.mark.broker
class TestOnARealBroker:
    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    @pytest.mark.parametrize("over_tls", [False, True], ids=["plaintext", "tls"])
    def test_a_password(self, secure: Secure, password: str, mechanism: str, over_tls: bool) -> None:
        secret = "${env:LAB_PLAIN_PASSWORD}" if mechanism == "PLAIN" else password
        settings = login(mechanism, secret, secure if over_tls else None)
        assert brokers(secure.sasl_tls if over_tls else secure.plain, settings) == [1]

    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    def test_a_wrong_password_is_named_and_not_shown(self, secure: Secure, password: str, mechanism: str) -> None:
        with pytest.raises(KafkaTrouble) as refused:
            brokers(secure.plain, login(mechanism, "${env:LAB_WRONG_PASSWORD}"))
        assert refused.value.kind == "authentication_failed"
        assert "wrong-7245" not in str(refused.value)

    def test_a_mechanism_that_the_broker_does_not_have(self, secured_broker: KafkaBroker, password: str) -> None:
        with pytest.raises(KafkaTrouble, match="it has: PLAIN") as refused:
            brokers(secured_broker.bootstrap, login("SCRAM-SHA-256", password))
        assert refused.value.kind == "authentication_failed"

    def test_a_session_is_renewed_before_it_ends(self, secure: Secure, password: str) -> None:
        cluster = Cluster(bootstrap=secure.plain, librdkafka=login("SCRAM-SHA-256", password))
        with closing(ProtocolClient(cluster)) as client:
            assert client.read_brokers(client.deadline()) == [1]
            [first] = client._connections.values()
            eventually(lambda: not first.is_usable, seconds=20)
            assert client.read_brokers(client.deadline()) == [1]
            assert client._connections.get(("127.0.0.1", int(secure.plain.rpartition(":")[2]))) is not first

    def test_tls_alone_and_with_a_certificate_of_the_clients(self, secure: Secure) -> None:
        tls = {"security.protocol": "SSL", "ssl.ca.location": str(secure.ca)}
        assert brokers(secure.tls, tls) == [1]
        both = {**tls, "ssl.certificate.location": str(secure.client), "ssl.key.location": str(secure.client)}
        assert brokers(secure.mutual, both) == [1]
        with pytest.raises(KafkaTrouble) as refused:
            brokers(secure.mutual, tls)
        assert refused.value.kind in ("tls_failed", "unreachable")

    def test_a_certificate_that_is_not_trusted_or_of_another_host(self, secure: Secure) -> None:
        with pytest.raises(KafkaTrouble) as refused:
            brokers(secure.tls, {"security.protocol": "SSL"})
        assert refused.value.kind == "tls_failed"
        named = secure.tls.replace("127.0.0.1", "localhost")
        tls = {"security.protocol": "SSL", "ssl.ca.location": str(secure.ca)}
        with pytest.raises(KafkaTrouble) as refused:
            brokers(named, tls)
        assert refused.value.kind == "tls_failed"
        assert brokers(named, {**tls, "ssl.endpoint.identification.algorithm": "none"}) == [1]
        assert brokers(named, {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}) == [1]

    def test_tokens_that_nobody_signed(self, secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LAB_CLAIMS", f"principal={ADMIN} scope=read")
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "${env:LAB_CLAIMS}",
        }
        assert brokers(secure.plain, settings) == [1]
        monkeypatch.setenv("LAB_CLAIMS", f"principal={ADMIN} lifeSeconds=-60")
        with pytest.raises(KafkaTrouble) as refused:
            brokers(secure.plain, settings)
        assert refused.value.kind == "authentication_failed"

    def test_a_token_of_an_issuer(self, secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LAB_CLIENT_SECRET", "secret-5193")
        with Issuer() as issuer:
            settings = {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(secure.ca),
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "lagwise",
                "sasl.oauthbearer.client.secret": "${env:LAB_CLIENT_SECRET}",
                "sasl.oauthbearer.scope": "kafka",
                "sasl.oauthbearer.token.endpoint.url": issuer.url,
            }
            assert brokers(secure.sasl_tls, settings) == [1]
            assert issuer.asked == [("lagwise:secret-5193", "grant_type=client_credentials&scope=kafka")]
            issuer.status = 401
            with pytest.raises(KafkaTrouble, match="HTTP 401") as refused:
                brokers(secure.sasl_tls, settings)
        assert refused.value.kind == "authentication_failed"
        assert "secret-5193" not in str(refused.value)

    def test_tokens_of_a_function_on_both_paths(
        self, secure: Secure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A function that a cloud's signer would be called in: asked again before its token ends."""
        function = f"""
import json, time
from lagwise_collectors.kafka_protocol.sasl import unsecured_token
asked = []
def token(config):
    asked.append(config)
    if config == "broken":
        raise RuntimeError("secret-8316")
    return unsecured_token({{"principal": {ADMIN!r}, "lifeSeconds": "3"}}), time.time() + 3
"""
        (tmp_path / "lab_tokens.py").write_text(function)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("LAB_REGION", "region=eu-1")
        settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        cluster = Cluster(
            bootstrap=secure.plain,
            oauth_token_function="lab_tokens:token",
            librdkafka={**settings, "sasl.oauthbearer.config": "${env:LAB_REGION}"},
            timeout_seconds=10,
        )
        with closing(ProtocolClient(cluster)) as client:
            assert client.read_brokers(client.deadline()) == [1]
        asked = importlib.import_module("lab_tokens").asked
        assert asked == ["region=eu-1"]
        with closing(KafkaSource(cluster)) as source:
            asked.clear()
            assert source.collect().errors == {}
            before = len(asked)
            eventually(lambda: source.collect().errors == {} and len(asked) > before + 1, seconds=20)
        monkeypatch.setenv("LAB_REGION", "broken")
        with closing(ProtocolClient(cluster)) as client, pytest.raises(KafkaTrouble, match="RuntimeError") as refused:
            client.read_brokers(client.deadline())
        assert refused.value.kind == "authentication_failed"
        assert "secret-8316" not in str(refused.value)
        missing = cluster.model_copy(update={"oauth_token_function": "lab_tokens:none"})
        with closing(KafkaSource(missing)) as source:
            assert "lab_tokens:none cannot be imported" in str(source.collect().header["errors"])

    def test_a_password_that_is_changed_while_it_is_in_use(self, secure: Secure, tmp_path: Path) -> None:
        """The broker asks each connection for it again; the file is read again after the first refusal."""
        file = tmp_path / "password"
        cluster = Cluster(
            bootstrap=secure.plain, librdkafka=login("SCRAM-SHA-256", f"${{file:{file}}}"), timeout_seconds=5
        )
        admin = AdminClient({"bootstrap.servers": secure.plain, **librdkafka_login(ADMIN)})
        try:
            with closing(KafkaSource(cluster)) as source:
                for password in ("first-6120", "second-9457"):
                    credentials = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
                    change = UserScramCredentialUpsertion(ADMIN, credentials, password.encode())
                    admin.alter_user_scram_credentials([change])[ADMIN].result(20)
                    file.write_text(password)
                    eventually(lambda: source.collect().errors == {}, seconds=30)
                file.write_text("wrong-7245")
                eventually(lambda: source.collect().errors != {}, seconds=30)
                assert "wrong-7245" not in str(source.collect().header)
        finally:
            usual = UserScramCredentialUpsertion(ADMIN, credentials, b"scram-sandbox")
            admin.alter_user_scram_credentials([usual])[ADMIN].result(20)

    def test_a_certificate_that_has_expired(self, secure: Secure) -> None:
        tls = {"security.protocol": "SSL", "ssl.ca.location": str(secure.ca)}
        with pytest.raises(KafkaTrouble, match="expired") as refused:
            brokers(secure.expired, tls)
        assert refused.value.kind == "tls_failed"
        with closing(KafkaSource(Cluster(bootstrap=secure.expired, librdkafka=dict(tls), timeout_seconds=5))) as source:
            [kind] = source.collect().errors
        assert kind == "tls_failed"


class Issuer:
    """A token endpoint as OAuth has it (RFC 6749), whose tokens are for the broker's development mode."""

    def __init__(self) -> None:
        self.status = 200
        #: Credentials and form of each request.
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                scheme, _, credentials = self.headers["Authorization"].partition(" ")
                assert scheme == "Basic"
                outer.asked.append((base64.b64decode(credentials).decode(), form))
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(
                    json.dumps({"access_token": unsecured_token({"principal": ADMIN}), "token_type": "Bearer"}).encode()
                )

            def log_message(self, format: str, *args: object) -> None:
                """Nothing on stderr."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"

    def __enter__(self) -> "Issuer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_settings_of_other_things_are_no_obstacle() -> None:
    settings: dict[str, str | int | float | bool] = {"enable.sparse.connections": True, "client.rack": "a"}
    reach = reach_of(Cluster(bootstrap="PLAINTEXT://one:1, two:2", librdkafka=settings))
    assert (reach.bootstrap, reach.tls, reach.mechanism) == (("one:1", "two:2"), None, None)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"security.protocol": "SASL_SSL"}, "not_supported"),  # which means Kerberos
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "not_supported"),
        ({"sasl.kerberos.keytab": "/etc/keytab"}, "not_supported"),
        ({"ssl.keystore.location": "/etc/keystore.p12"}, "not_supported"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "not_supported"),
        ({"security.protocol": "TLS"}, "setting_refused"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"}, "setting_refused"),
    ],
)  # fmt: skip
def test_settings_that_are_left_to_librdkafka(settings: dict[str, str | bool], kind: str) -> None:
    with pytest.raises(KafkaTrouble) as refused:
        reach_of(Cluster(bootstrap="127.0.0.1:9092", librdkafka=settings))
    assert refused.value.kind == kind

"""With a marked secret in every setting that may hold one, the product shows none of them anywhere.

Receivers repeat what they get, also in base64 and hex; brokers and databases reject the passwords; every part logs
debug output. Then every output, file, table row, page, answer and command line is searched.
"""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from sqlalchemy import MetaData, create_engine, select

from lagwise.config import Config
from lagwise.platform import health
from lagwise.platform.secrets import SECRET_KEYS
from lagwise.tables import ALL_TABLES
from lagwise.tables.store import Lake
from lagwise_alerts.dead_mans_switch import ping
from lagwise_app.supervisor.effective_settings import EFFECTIVE_SETTINGS, free_port
from lagwise_app.supervisor.processes import process_command
from tests.alerts.channels.mail_server import MailServer, mail_server
from tests.alerts.channels.tls import authority
from tests.dashboard.serving import started
from tests.dashboard.socket_client import drawn
from tests.e2e.echo import Echo
from tests.fixtures.postgresql import PostgresServer
from tests.marked import CommandLines, Marked, given, may_be_secret

if TYPE_CHECKING:
    from lagwise_sandbox.broker import KafkaBroker

pytestmark = [pytest.mark.e2e, pytest.mark.broker, pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(600)]

_DEADLINE_SECONDS = 300.0
RULES = """version: 1
rules:
  - {name: unreadable, when: {stale: collection, older_than: 1s}, severity: page, for: 0s, keep_firing_for: 1h}
"""
PAGES = ("", "group", "topic", "retention", "rebalances", "alerts", "capacity", "health")
ANSWERS = ("/", "/_stcore/host-config", "/nothing", "/auth/login", "/oauth2callback", "/auth/logout")
#: Marks that a receiver must have got, or the test would be of settings that nothing reads.
RECEIVED = {
    "webhook.url", "webhook.authorization", "am-webhook.url", "am.url", "pager.url", "pager.routing_key", "slack.url",
    "teams.url", "apprise.url", "flink.url", "flink.token", "oauth", "store token",
}  # fmt: skip


class Installation:
    """Folders and marked secrets. Everything that any process prints becomes a file of ``shown``."""

    def __init__(self, folder: Path) -> None:
        self.data, self.own, self.shown = (folder / name for name in ("data", "own", "shown"))
        for made in (self.own, self.shown, folder / "tmp"):
            made.mkdir()
        self.marked = Marked(self.own)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LAGWISE_", "AWS_"))}
        self._environment = kept | {"TMPDIR": str(folder / "tmp"), "PYTHONUNBUFFERED": "1"}
        self.folder = folder

    def settings(self, name: str, tree: dict[str, Any]) -> Path:
        file = self.own / f"{name}.yaml"
        file.write_text(yaml.safe_dump(tree), encoding="utf-8")
        return file

    def start(self, settings: Path, *arguments: str) -> "tuple[subprocess.Popen[bytes], Path]":
        """A command with --debug, and the file that it prints to."""
        printed = self.shown / " ".join((settings.stem, *arguments))
        command = [sys.executable, "-m", "lagwise", "--config", str(settings), "--debug", *arguments]
        with printed.open("wb") as output:
            environment = self._environment | self.marked.environment
            return subprocess.Popen(command, stdout=output, stderr=output, env=environment), printed

    def run(self, settings: Path, *arguments: str, exit_code: int = 0) -> str:
        """What a command prints."""
        process, printed = self.start(settings, *arguments)
        assert process.wait(_DEADLINE_SECONDS) == exit_code, printed.read_text()
        return printed.read_text()

    @contextmanager
    def up(self, settings: Path) -> Iterator[Callable[[], str]]:
        """The whole product while the block runs; yields how it does."""
        process, printed = self.start(settings, "up")
        try:
            yield lambda: printed.read_text() if process.poll() is None else pytest.fail(printed.read_text())
        finally:
            process.terminate()
            process.wait(30)

    def show(self, name: str, text: str) -> str:
        """Keep what a page or server answered."""
        (self.shown / name.replace("/", "_")).write_text(text, encoding="utf-8")
        return text


def everything(its: Installation, broker: "KafkaBroker", echo: Echo, mails: MailServer, sql_url: str) -> dict[str, Any]:
    """Settings in which every place that may hold a secret holds a marked one, but ``database``."""
    marked = its.marked
    wrong: dict[str, Any] = {"bootstrap": broker.bootstrap, "interval_seconds": 5, "timeout_seconds": 3}
    debugged = {"debug": "all", "log_level": 7}
    plain = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
    flink = {
        "name": "jobs",
        "type": "flink",
        "url": f"{echo.url}/401/{marked.mark('flink.url')}",
        "token": marked.reference("flink.token"),
    }
    sql = {"name": "table", "type": "sql", "url": marked.reference("sql.url", sql_url), "query": "select 1"}
    key = marked.mark("ssl.key.pem")
    clusters: list[dict[str, Any]] = [
        {
            "name": "right",
            "bootstrap": broker.bootstrap,
            "interval_seconds": 2,
            "offsets_topic": True,
            "librdkafka": {k: v for k, v in broker.client_settings().items() if k != "bootstrap.servers"}
            | {"sasl.password": marked.reference("right", broker.client_settings()["sasl.password"])},
            "external_offsets": [sql, flink],
        },
        {
            **wrong,
            "name": "wrong-password",
            "librdkafka": {
                **plain,
                **debugged,
                "sasl.password": marked.reference("sasl.password"),
                **{key: marked.reference(key) for key in sorted(SECRET_KEYS) if "oauthbearer" in key},  # not used
            },
        },
        {
            **wrong,
            "name": "wrong-key",
            "librdkafka": {
                "security.protocol": "SSL",
                "ssl.key.pem": marked.reference("ssl.key.pem", f"-----BEGIN KEY-----\n{key}\n-----END KEY-----"),
                "ssl.key.password": marked.reference("ssl.key.password"),
                "ssl.keystore.password": marked.reference("ssl.keystore.password"),
                **debugged,
            },
        },
        {
            **wrong,
            "name": "wrong-token",
            "librdkafka": {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "lagwise",
                "sasl.oauthbearer.client.secret": marked.reference("oauth"),
                "sasl.oauthbearer.token.endpoint.url": f"{echo.url}/401/token",
                **debugged,
            },
        },
        {
            "name": "queues",
            "system": "rocketmq",
            "interval_seconds": 5,
            "name_servers": f"127.0.0.1:{free_port()}",
            "access_key": marked.secret("access_key"),
            "secret_key": marked.reference("secret_key"),
        },
    ]
    return {
        "data": str(its.data),
        "clusters": clusters,
        "lake": {"storage_options": {"AWS_SECRET_ACCESS_KEY": marked.reference("store secret")}},
        "analysis": {
            "interval_seconds": 2,
            "spark": {
                "conf": {
                    "spark.hadoop.fs.s3a.secret.key": marked.reference("spark secret.key"),
                    "spark.hadoop.fs.azure.account.key.me.dfs.example": marked.secret("spark account.key"),
                    "spark.hadoop.lagwise.password": marked.secret("spark password"),
                    "spark.driver.extraJavaOptions": f"-Djavax.net.ssl.trustStorePassword={marked.mark('spark java')}",
                }
            },
        },
        "alerts": {
            "interval_seconds": 2,
            "rules_file": str(its.folder / "rules.yaml"),
            "channels": channels(its, echo, mails),
            "heartbeat": {"url": f"{echo.url}/500/{marked.mark('heartbeat.url')}", "interval_seconds": 5},
        },
        "scaling": {"port": free_port(), "token": marked.reference("scaling.token", marked.mark("scaling.token"))},
        "server": {
            "port": free_port(),
            "token": marked.reference("server.token", marked.mark("server.token")),
            "tokens": [{"name": "team", "token": marked.reference("server.tokens", marked.mark("server.tokens"))}],
            "metrics": {
                "otlp": {
                    "url": f"{echo.url}/400/{marked.mark('otlp.url')}",
                    "authorization": marked.reference("otlp.login", f"Bearer {marked.mark('otlp.authorization')}"),
                    "interval_seconds": 5,
                }
            },
        },
        "dashboard": {"port": free_port()},
    }


def channels(its: Installation, echo: Echo, mails: MailServer) -> list[dict[str, Any]]:
    """Every type of channel, each to a receiver that rejects what it gets."""
    marked = its.marked

    def address(channel: str) -> str:
        return f"{echo.url}/400/{marked.mark(f'{channel}.url')}"

    def login(channel: str) -> str:
        return marked.reference(f"{channel}.login", f"Bearer {marked.mark(f'{channel}.authorization')}")

    apprise = f"json://me:{marked.mark('apprise password')}@127.0.0.1:{echo.port}/400/{marked.mark('apprise.url')}"
    mail = {"host": "127.0.0.1", "port": mails.port, "sender": "lagwise@example.org", "to": ["ops@example.org"]}
    mail |= {"username": "lagwise", "ca_file": str(its.folder / "127.0.0.1.pem")}
    found = {
        "webhook": {"url": address("webhook"), "secret": marked.reference("secret"), "authorization": login("webhook")},
        "alertmanager_webhook": {"url": address("am-webhook"), "authorization": login("am-webhook")},
        "alertmanager": {"url": address("am"), "authorization": login("am")},
        "pagerduty": {"url": address("pager"), "routing_key": marked.reference("pager.routing_key")},
        "slack": {"url": marked.reference("slack.url", address("slack"))},
        "teams": {"url": marked.reference("teams.url", address("teams"))},
        "email": {**mail, "password": marked.reference("mail.password")},
        "apprise": {"url": marked.reference("apprise.url", apprise)},
    }
    return [{"name": kind, "type": kind, **settings} for kind, settings in found.items()]


def rejected(its: Installation, tree: dict[str, Any], echo: Echo, postgres: PostgresServer) -> dict[str, Any]:
    """The same settings with a database and an object store that reject them."""
    store = {
        "AWS_ENDPOINT_URL": f"{echo.url}/403",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "reader",
        "AWS_SECRET_ACCESS_KEY": its.marked.reference("store secret"),
        "AWS_SESSION_TOKEN": its.marked.reference("store token", its.marked.mark("store token")),
        "max_retries": "0",
    }
    return tree | {
        "data": "s3://lake/x",
        "state_dir": str(its.folder / "rejected"),
        "lake": {"storage_options": store},
        "database": postgres.url("lagwise", password=its.marked.secret("database")),
    }


def look_at_failures(its: Installation, settings: Path) -> None:
    """What commands say of a database and a store that reject them, and of all that doctor looks at."""
    assert "password authentication failed" in its.run(settings, "alert", "list", exit_code=1)
    assert "403" in its.run(settings, "status", exit_code=1)
    checks = its.run(settings, "doctor", "--no-spark", "--json", exit_code=1)
    for expected in ("authentication", "password authentication failed", "403"):
        assert expected in checks.lower(), f"{expected} is not in {checks}"
    its.run(settings, "config")


def look_at_sign_in(its: Installation, echo: Echo) -> None:
    """The dashboard by itself, with a sign-in whose provider fails."""
    port, marked, folder = free_port(), its.marked, its.shown / "sign-in"
    address = f"http://127.0.0.1:{port}"
    auth = {
        "redirect_uri": f"{address}/oauth2callback",
        "cookie_secret": marked.mark("cookie_secret"),
        "client_id": "lagwise",
        "client_secret": marked.secret("client_secret").replace('"', ""),
        "server_metadata_url": f"{echo.url}/500/metadata",
    }
    auth_file = its.own / "auth.toml"
    auth_file.write_text("[auth]\n" + "".join(f'{key} = "{value}"\n' for key, value in auth.items()), encoding="utf-8")
    sign_in = {"auth_file": str(auth_file)}
    settings = its.settings("sign-in", {"data": str(its.data), "dashboard": {"port": port, "sign_in": sign_in}})
    folder.mkdir()
    with started(process_command(health.DASHBOARD), folder, address, settings):
        look_at_pages(its, "signed out", address, ("alerts",))


def look_at_pages(its: Installation, who: str, address: str, pages: tuple[str, ...]) -> dict[str, str]:
    """What each page draws, and what the server answers by itself."""
    for path in ANSWERS:
        answer = httpx.get(address + path)
        its.show(f"{who} {path}", f"{answer.headers} {answer.text}")
    return {page: its.show(f"{who} page {page}", drawn(address, page, origin=address)) for page in pages}


def look_at_product(its: Installation, settings: Path, tree: dict[str, Any]) -> None:
    """Pages, the scaling signal, metrics and commands, while everything runs."""
    pages = look_at_pages(its, "anybody", f"http://127.0.0.1:{tree['dashboard']['port']}", PAGES)
    assert "400" in pages["alerts"], "what receivers answered is shown"
    for name, token in (("right", its.marked.mark("scaling.token")), ("wrong", "x")):
        address = f"http://127.0.0.1:{tree['scaling']['port']}/scaling/right/group"
        answer = httpx.get(address, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code == 401) is (name == "wrong")
        its.show(f"scaling {name} token", f"{answer.headers} {answer.text}")
    for name, token in (("right", its.marked.mark("server.token")), ("wrong", "x")):
        address = f"http://127.0.0.1:{tree['server']['port']}/metrics"
        answer = httpx.get(address, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code == 401) is (name == "wrong")
        its.show(f"metrics {name} token", f"{answer.headers} {answer.text}")
    for name, token in (("right", its.marked.mark("server.tokens")), ("wrong", "x")):
        for path in ("api/v1/groups", "api/v1/alerts", "v3/kafka"):
            address = f"http://127.0.0.1:{tree['server']['port']}/{path}"
            answer = httpx.get(address, headers={"Authorization": f"Bearer {token}"})
            assert (answer.status_code == 401) is (name == "wrong")
            its.show(f"{path} {name} token", f"{answer.headers} {answer.text}")
    assert "answered 400" in its.run(settings, "alert", "deliveries", "--json")
    its.run(settings, "config", "--json")
    its.run(settings, "alert", "test-channel", "slack", exit_code=1)


def in_files(its: Installation) -> dict[str, list[str]]:
    """Every file but those that the test wrote itself."""
    found = {}
    written = its.marked.found_in((its.own / "lagwise.yaml").read_bytes())
    for file in filter(Path.is_file, its.folder.rglob("*")):
        secrets = its.marked.found_in(file.read_bytes())
        if file == its.data / EFFECTIVE_SETTINGS:  # the settings of the parts: as the user wrote them, for parts alone
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            secrets = sorted(set(secrets) - set(written))
        if secrets and not file.is_relative_to(its.own):
            found[str(file.relative_to(its.folder))] = secrets
    return found


def in_tables(its: Installation) -> dict[str, list[str]]:
    """Every row of the lake and of the database."""
    lake = Lake(str(its.data / "lake"))
    rows = {table.name: str(lake.read(table).to_pylist()) for table in ALL_TABLES}
    assert "authentication" in rows["samples"], "brokers rejected a password"
    engine = create_engine(f"sqlite:///{its.data / 'lagwise.db'}")
    schema = MetaData()
    schema.reflect(engine)
    with engine.connect() as connection:
        rows |= {name: str(connection.execute(select(table)).all()) for name, table in schema.tables.items()}
    engine.dispose()
    assert "answered 400" in rows["deliveries"]
    return {name: found for name, text in rows.items() if (found := its.marked.found_in(text))}


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as running:
        yield running


@pytest.fixture
def mails(tmp_path: Path) -> Iterator[MailServer]:
    with mail_server(authority(tmp_path).server, password="another one") as running:
        yield running


def test_no_secret_shows(
    secured_broker: "KafkaBroker",
    postgres_server: PostgresServer,
    echo: Echo,
    mails: MailServer,
    tmp_path: Path,
) -> None:
    its = Installation(tmp_path)
    marked = its.marked
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    sql_url = postgres_server.url("lagwise", password=marked.mark("sql.url"))
    tree = everything(its, secured_broker, echo, mails, sql_url)
    settings = its.settings("lagwise", tree)
    all_rejected = rejected(its, tree, echo, postgres_server)
    assert given(Config.model_validate(all_rejected)) == may_be_secret(Config), "a setting has no marked secret yet"
    assert set().union(*(cluster.get("librdkafka", ()) for cluster in tree["clusters"])) >= SECRET_KEYS

    def missing() -> set[str]:
        """What has not happened yet."""
        beats = {part: beat.line for part, beat in health.read(its.data).items()}
        if "authentication_failed" not in beats.get(health.COLLECTOR, ""):
            return {"a broker that rejects a password"}
        if beats.get(health.ANALYSIS, "starting Spark") == "starting Spark":
            return {"Spark"}
        if not mails.signed_in:
            return {"mail"}
        return RECEIVED - {found.partition(" in ")[0] for found in marked.found_in("\n".join(list(echo.received)))}

    with CommandLines() as lines, its.up(settings) as check_up:
        look_at_failures(its, its.settings("rejected", all_rejected))
        look_at_sign_in(its, echo)
        heartbeat = Config.model_validate(tree).alerts.heartbeat
        assert heartbeat is not None
        its.show("heartbeat", str(ping(heartbeat)))  # not fetched by the product, in which nothing is well
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while missing():
            check_up()
            assert time.monotonic() < deadline, f"still waiting for {missing()}"
            time.sleep(0.2)
        look_at_product(its, settings, tree)
    assert any(b"SparkSubmit" in line and str(tmp_path).encode() in line for line in lines.seen)

    leaks = {f"command line {line[:200]!r}": found for line in lines.seen if (found := marked.found_in(line))}
    assert leaks | in_files(its) | in_tables(its) == {}

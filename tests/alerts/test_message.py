"""The document: golden files, the published schema, and names that strangers chose."""

import json
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lagwise.config import Config, NameFilter
from lagwise.domain.group_record import GroupNumbers
from lagwise.links.first_commands import first_command, shell_word
from lagwise_alerts.model import AlertKind, AlertSubject, Notification, Severity
from lagwise_alerts.notify.message import dashboard_link, document, render
from lagwise_alerts.rules.flapping import Flapping
from lagwise_alerts.rules.owners import Owner
from lagwise_alerts.rules.rule_condition import RuleCondition
from lagwise_alerts.rules.rule_file import Rule, RuleBook, load_rules
from tests.alerts.night import TWENTY, Night
from tests.alerts.support import Player, at, book, cluster_condition, freshness, group_condition, observation

GOLDEN = Path(__file__).parent / "golden"
CONFIG = Config.model_validate(
    {
        "clusters": [
            {
                "name": "kafka",
                "bootstrap": "broker-1:9092,broker-2:9092",
                "librdkafka": {"security.protocol": "SASL_SSL"},
            }
        ],
        "alerts": {"dashboard_url": "https://lagwise.example/"},
    }
)

MEASURED = GroupNumbers(
    lag_records=12000,
    lag_seconds=431.5,
    lag_seconds_is_lower_bound=False,
    produce_rate_per_second=25.0,
    consume_rate_per_second=0.0,
    seconds_to_loss=4800.0,
    loss_cause="deletion",
    records_lost=0,
    members=0,
    worst_topic="purchases",
    worst_partition=3,
)


def _schema() -> Draft202012Validator:
    text = resources.files("lagwise_alerts.notify").joinpath("lagwise.alert.v1.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    # Receivers must tolerate new fields; the tests must not: a field without a description is not published.
    return Draft202012Validator(schema | {"additionalProperties": False})


def _examples() -> dict[str, Notification]:
    """One notification of each kind, as the decisions make them."""
    player = Player(book())
    player.see(5, observation(group_condition(0, "falling_behind", since=-600, numbers=MEASURED)))
    player.see(20, observation(group_condition(15, "stopped", numbers=MEASURED)))
    lost = replace(MEASURED, records_lost=1234567, seconds_to_loss=0.0, lag_seconds_is_lower_bound=True)
    player.see(35, observation(group_condition(30, "losing_data", numbers=lost)))
    better = replace(MEASURED, members=2, seconds_to_catch_up=95.0, consume_rate_per_second=80.0)
    player.see(50, observation(group_condition(45, "catching_up", numbers=better)))
    player.see(375, observation(group_condition(370, "catching_up", since=45, numbers=better)))
    names = ["group_firing", "group_escalated", "group_losing_data", "group_resolved"]
    examples = dict(zip(names, player.notified, strict=True))

    for seconds, is_found in (
        (400, True),
        (415, True),
        (520, True),
        (535, False),
        (640, False),
        (745, False),
        (850, False),
    ):
        left = group_condition(seconds, "ok", kind=AlertKind.LEFT_TOPICS, is_found=is_found, since=seconds)
        player.see(seconds + 5, observation(left))
    examples |= dict(zip(["finding_firing", "finding_resolved"], player.notified[4:], strict=True))

    other = Player(book())
    other.see(5, observation(group_condition(0, "stopped", numbers=MEASURED)))
    for seconds in (30, 60):
        other.see(seconds + 5, observation(judged_until=seconds))
    examples["group_gone"] = other.notified[1]

    examples |= _owned()
    monitor = Player(book())
    monitor.see(300, observation(freshness(300, 0)))
    for seconds in (305, 340):
        monitor.see(seconds, observation(freshness(seconds, 300)))
    monitor.see(700, observation(freshness(700, 340, kind=AlertKind.ANALYSIS)))
    examples |= dict(
        zip(["collection_firing", "collection_resolved", "analysis_firing"], monitor.notified, strict=True)
    )
    return examples | _of_a_cluster() | _shared()


def _of_a_cluster() -> dict[str, Notification]:
    player = Player(book())
    for second in range(0, 900, 100):
        player.see(second + 5, observation(cluster_condition(second, AlertKind.NO_LEADER, is_found=second < 300)))
    return dict(zip(["cluster_firing", "cluster_resolved"], player.notified, strict=True))


def _shared() -> dict[str, Notification]:
    """A shared incident: its beginning, the end of a member that was notified by itself, and its own end."""
    night = Night(load_rules(None, ("ops",)), numbers=MEASURED)
    night.see(0, {})
    night.see(15, {TWENTY[0]: "stopped"})
    (begin,) = night.see(30, dict.fromkeys(TWENTY, "stopped"))
    for second in range(45, 91, 15):
        night.see(second, {TWENTY[1]: "stopped"})
    (member,) = (one for one in night.see(105, {TWENTY[1]: "stopped"}) if one.channels)
    ends = [one for second in range(120, 196, 15) for one in night.see(second, {}) if one.channels]
    return {"shared_incident_firing": begin, "shared_incident_member": member, "shared_incident_resolved": ends[0]}


def _owned() -> dict[str, Notification]:
    """Of a group that has an owner: one that comes and goes, and is told again."""
    rules = book()
    owner = Owner(groups=NameFilter(include=("orders",)), team="payments", labels={"tier": "1"})
    owned = Player(
        RuleBook(
            rules.rules, rules.channels, owners=(owner,), repeat_seconds={Severity.PAGE: 600.0}, flapping=Flapping()
        )
    )
    for start in (0, 300, 600):
        owned.see(start + 5, observation(group_condition(start, "stopped", numbers=MEASURED)))
        owned.see(start + 20, observation(group_condition(start + 15, "ok")))
        owned.see(start + 105, observation(group_condition(start + 100, "ok", since=start + 15)))
    for seconds in range(705, 1206, 100):
        owned.see(seconds, observation(group_condition(seconds, "stopped", since=705, numbers=MEASURED)))
    members = Player(RuleBook((_IDLE,), ("ops",)))
    idle = group_condition(0, "ok", kind=AlertKind.IDLE_MEMBERS, is_found=True)
    members.see(5, observation(replace(idle, found_count=2, sentence="2 of 5 members own no partition.")))
    return {
        "group_flapping": owned.notified[4],
        "group_repeated": owned.notified[5],
        "idle_members_firing": members.notified[0],
    }


_IDLE = Rule(name="idle", severity=Severity.INFO, when=RuleCondition(idle_members_above=0))
EXAMPLES = _examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden_file(name: str) -> None:
    """To change one on purpose, delete the file, run this twice, and say in the commit why receivers can bear it."""
    made = json.dumps(document(EXAMPLES[name], CONFIG), indent=2, ensure_ascii=False) + "\n"
    file = GOLDEN / f"{name}.json"
    if not file.exists():
        file.write_text(made, encoding="utf-8")
        pytest.fail(f"{file} was not there and has been written: look at it, then run again")
    assert made == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("seconds", "cause", "lost", "outlook"),
    [
        (4800.0, "deletion", 0, "Unread records will be deleted in 1 h 20 min at the earliest."),
        (4800.0, "expiry", 0, "The committed offsets will expire in about 1 h 20 min."),
        (0.0, "deletion", 0, "Unread records may be deleted at any moment."),
        (0.0, "expiry", 0, "The committed offsets will expire at any moment."),
        (0.0, "deletion", 3, "3 records were deleted before they were read. Unread records are being deleted now."),
        (0.0, "expiry", 3, "3 records were deleted before they were read. The committed offsets will expire at any mo"),
        (None, None, 0, None),
    ],
)
def test_the_outlook_names_what_will_be_lost(
    seconds: float | None, cause: str | None, lost: int, outlook: str | None
) -> None:
    numbers = GroupNumbers(seconds_to_loss=seconds, loss_cause=cause, records_lost=lost)
    player = Player(book())
    player.see(20, observation(group_condition(15, "stopped", numbers=numbers)))
    said = document(player.notified[0], CONFIG)["outlook"]
    assert said is None if outlook is None else said.startswith(outlook)


def test_a_loss_that_may_come_sooner_is_not_described_as_a_later_one() -> None:
    numbers = GroupNumbers(seconds_to_loss=4800.0, seconds_to_loss_is_upper_bound=True, loss_cause="deletion")
    player = Player(book())
    player.see(20, observation(group_condition(15, "stopped", numbers=numbers)))
    said = document(player.notified[0], CONFIG)["outlook"]
    assert said == "Unread records may be deleted at any moment, and are past the retention in about 1 h 20 min."


def test_offsets_that_expire_with_nothing_unread_are_not_called_a_risk_of_losing_data() -> None:
    player = Player(book())
    for unread, now in ((0, 0), (0, 15), (1, 30), (1, 45)):
        numbers = GroupNumbers(lag_records=unread, seconds_to_loss=4800.0, loss_cause="expiry")
        player.see(now + 5, observation(group_condition(now, "at_risk", numbers=numbers)))
    said = [
        (notified["event"], notified["severity"], notified["summary"])
        for notified in (document(n, CONFIG) for n in player.notified)
    ]
    assert said == [
        ("firing", "info", "Group orders on kafka will lose its committed offsets; it has read everything"),
        ("escalated", "page", "Group orders on kafka is at risk of losing data"),
    ]


def test_no_golden_file_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_document_obeys_the_published_schema(name: str) -> None:
    _schema().validate(json.loads(render(EXAMPLES[name], CONFIG)))


def test_the_schema_notices_what_is_wrong() -> None:
    good = document(EXAMPLES["group_firing"], CONFIG)
    validator = _schema()
    for broken in (
        {k: v for k, v in good.items() if k != "incident_id"},
        good | {"status": "fine"},
        good | {"lag_records": "many"},
        good | {"since": "yesterday"},
        good | {"extra": 1},
    ):
        assert list(validator.iter_errors(broken))


def test_the_schema_in_the_docs_is_the_one_in_the_package() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "alerts" / "messages.md").read_text(encoding="utf-8")
    published = resources.files("lagwise_alerts.notify").joinpath("lagwise.alert.v1.schema.json")
    schema = json.loads(published.read_text("utf-8"))
    undocumented = [name for name in schema["properties"] if f"`{name}`" not in docs]
    assert not undocumented


class TestNamesThatStrangersChose:
    HOSTILE = (
        "<script>alert(1)</script>",
        "'; rm -rf ~ #",
        "$(touch /tmp/x)`id`",
        "--delete",
        "../../etc",
        "a b\nc\td",
        "\x1b[2J\x07red",
        "\u202eevil\u202c",
        "名前 🦆",
        "quote\"back\\slash'",
        "x" * 249,
        "!history",
        "",
        " ",
    )

    @pytest.mark.parametrize("name", HOSTILE)
    def test_the_command_has_the_name_as_one_word(self, name: str) -> None:
        command = first_command("kafka", name, CONFIG.clusters)
        assert command.isprintable()
        tool, rest = command.split(" ", 1)
        assert tool == "kafka-consumer-groups"
        assert _words_in_bash(rest) == [
            "--bootstrap-server",
            "broker-1:9092,broker-2:9092",
            "--command-config",
            "client.properties",
            "--describe",
            f"--group={name}",
        ]

    @pytest.mark.parametrize("name", HOSTILE)
    def test_the_link_leads_to_the_name(self, name: str) -> None:
        link = dashboard_link(AlertSubject(AlertKind.GROUP, "kafka", name), "https://lagwise.example/")
        parts = urlsplit(link)
        assert link.isascii()
        assert (parts.scheme, parts.netloc, parts.path, parts.fragment) == ("https", "lagwise.example", "/group", "")
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True)
        assert query == {"cluster": ["kafka"], "group": [name]}

    @pytest.mark.parametrize("name", HOSTILE)
    def test_the_document_is_ascii_and_gives_the_name_back(self, name: str) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "stopped", group=name)))
        body = render(player.notified[0], CONFIG)
        assert body.isascii()
        assert body.isprintable()
        assert json.loads(body)["group"] == name
        _schema().validate(json.loads(body))

    @settings(max_examples=60)
    @given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40))
    def test_any_name_is_one_word_in_a_shell(self, name: str) -> None:
        assert _words_in_bash(shell_word(name)) == [name]


def _words_in_bash(text: str) -> list[str]:
    """What a real shell makes of it."""
    script = f"printf '%s\\0' {text}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}, timeout=20
    )
    return done.stdout.decode("utf-8").split("\0")[:-1]


def test_a_cluster_that_is_not_configured_leaves_a_blank_to_fill() -> None:
    command = first_command("gone", "orders", CONFIG.clusters)
    assert command == "kafka-consumer-groups --bootstrap-server HOST:PORT --describe --group=orders"


def test_a_plain_cluster_needs_no_client_properties() -> None:
    clusters = Config.model_validate({"clusters": [{"bootstrap": "localhost:9092"}]}).clusters
    assert first_command("kafka", "orders", clusters) == (
        "kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group=orders"
    )


@pytest.mark.parametrize(
    ("known", "command"),
    [
        ({"status": "stalled"}, "kafka-consumer-groups … --describe --members --verbose --group=orders"),
        ({"status": "stopped"}, "kafka-consumer-groups … --describe --members --verbose --group=orders"),
        (
            {"status": "unknown", "reason": "rebalancing"},
            "kafka-consumer-groups … --describe --members --verbose --group=orders",
        ),
        (
            {"status": "stalled", "topic": "t", "transaction_seconds": 4500.0},
            "kafka-transactions … find-hanging --topic=t",
        ),
        ({"status": "unknown", "reason": "unreadable"}, "lagwise doctor"),
        ({"status": "falling_behind"}, "kafka-consumer-groups … --describe --group=orders"),
        (
            {"status": "at_risk", "loss_cause": "deletion", "topic": "-t"},
            "kafka-configs … --describe --all --entity-type topics --entity-name=-t",
        ),
        (
            {"status": "at_risk", "loss_cause": "deletion", "topic": "t", "stands_still": True},
            "kafka-consumer-groups … --describe --members --verbose --group=orders",
        ),
        (
            {"status": "losing_data", "topic": "t", "stands_still": True},
            "kafka-consumer-groups … --describe --members --verbose --group=orders",
        ),
        (
            {"status": "at_risk", "loss_cause": "expiry", "topic": "t", "stands_still": True},
            "kafka-consumer-groups … --describe --group=orders",
        ),
        (
            {"status": "at_risk", "loss_cause": "expiry", "topic": "t"},
            "kafka-consumer-groups … --describe --group=orders",
        ),
    ],
)
def test_the_first_command_suits_the_status(known: dict[str, Any], command: str) -> None:
    clusters = Config.model_validate({"clusters": [{"bootstrap": "localhost:9092"}]}).clusters
    found = first_command("kafka", "orders", clusters, **known)
    assert found == command.replace("…", "--bootstrap-server localhost:9092")


@pytest.mark.parametrize(
    ("known", "command"),
    [
        ({"status": "stopped"}, "mqadmin consumerProgress … --showClientIP=true --groupName=orders"),
        ({"status": "losing_data", "topic": "-t"}, "mqadmin topicStatus … --topic=-t"),
        ({"status": "unknown", "reason": "unreadable"}, "lagwise doctor"),
    ],
)
def test_the_first_command_about_a_group_of_rocketmq_is_rocketmqs(known: dict[str, Any], command: str) -> None:
    cluster = {"system": "rocketmq", "name_servers": "n1:9876,n2:9876"}
    clusters = Config.model_validate({"clusters": [cluster]}).clusters
    found = first_command("rocketmq", "orders", clusters, **known)
    assert found == command.replace("…", "--namesrvAddr='n1:9876;n2:9876'")


def test_the_same_notification_is_the_same_bytes() -> None:
    notification = EXAMPLES["group_firing"]
    assert render(notification, CONFIG) == render(replace(notification, decided_at=at(5)), CONFIG)

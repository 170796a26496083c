"""What each receiver gets: golden files, the limits of each format, and names that strangers chose."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from lagwise.config.channels import Alertmanager, AlertmanagerWebhook, Email
from lagwise_alerts.channels import (
    TAKE_SUMMARIES,
    alertmanager,
    alertmanager_webhook,
    apprise_url,
    pagerduty,
    slack,
    teams,
)
from lagwise_alerts.channels.mail import mail
from lagwise_alerts.channels.message_text import message_text
from tests.alerts.channels.documents import DOCUMENTS, HOSTILE, LONGEST, SUMMARIES, of_group, summary

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)
#: Teams rejects longer messages.
TEAMS_MAX_BYTES = 28_672
KEY = "0123456789abcdef0123456789abcdef"

RECEIVER = AlertmanagerWebhook(name="ops", type="alertmanager_webhook", url="https://x/", labels={"team": "shop"})
PUSHED = Alertmanager(name="am", type="alertmanager", url="https://x/", labels={"team": "shop"})
MAILED = Email(
    name="mail", type="email", host="smtp.example", sender="lagwise@shop.example", to=("a@shop.example", "b@x.example")
)

Document = dict[str, Any]


def _mail(document: Document) -> str:
    return mail(document, MAILED).as_bytes().decode("ascii").replace("\r\n", "\n")


def _apprise(document: Document) -> str:
    notified = message_text(document)
    return f"{apprise_url.notify_type(notified)}\n{notified.symbol} {notified.title}\n\n{apprise_url.text(notified)}\n"


JSON_FORMATS: dict[str, Callable[[Document], Any]] = {
    "alertmanager_webhook": lambda d: alertmanager_webhook.payload(d, RECEIVER),
    "alertmanager": lambda d: alertmanager.payload(d, None, PUSHED, NOW),
    "pagerduty": lambda d: pagerduty.payload(d, KEY),
    "slack": slack.payload,
    "teams": teams.payload,
}
TEXT_FORMATS: dict[str, Callable[[Document], str]] = {"email": _mail, "apprise": _apprise}
FORMATS: dict[str, Callable[[Document], Any]] = {**JSON_FORMATS, **TEXT_FORMATS}

_ENDLESS = dict.fromkeys(("summary", "sentence", "outlook", "first_command"), "🦆" * 20_000)
#: Summaries that are golden files; the other is long, and says little more.
TOLD_IN_FULL = ("summary", "summary_over")
_HOSTILE_SUMMARY = summary([of_group(name, name) for name in LONGEST] * 70)
#: Every name that a stranger may give, as a document: hostile ones, the longest, and text without an end.
STRANGERS = [
    DOCUMENTS["hostile"],
    *(of_group(name, name) for name in LONGEST),
    DOCUMENTS["firing"] | _ENDLESS,
    DOCUMENTS["shared_member"] | _ENDLESS | {"shared_incident": DOCUMENTS["shared"]["shared_incident"] | _ENDLESS},
]
#: What the formats that take summaries must hold, too.
MANY = [*SUMMARIES.values(), _HOSTILE_SUMMARY]


EXAMPLES = [
    *((channel, name, document) for channel in FORMATS for name, document in DOCUMENTS.items()),
    *((channel, name, SUMMARIES[name]) for channel in FORMATS if channel in TAKE_SUMMARIES for name in TOLD_IN_FULL),
]


@pytest.mark.parametrize(("channel", "name", "document"), EXAMPLES, ids=[f"{c} {n}" for c, n, _ in EXAMPLES])
def test_golden_file(channel: str, name: str, document: Document) -> None:
    """To change one on purpose, delete the file, run this twice, and look at what was written."""
    made = FORMATS[channel](document)
    text = made if isinstance(made, str) else json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    file = GOLDEN / channel / f"{name}.{'json' if channel in JSON_FORMATS else 'txt'}"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        pytest.fail(f"{file} was not there and has been written: look at it, then run again")
    assert text == file.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    there = {f"{file.parent.name}/{file.stem}" for file in GOLDEN.rglob("*.*")}
    assert there == {f"{channel}/{name}" for channel, name, _ in EXAMPLES}


@pytest.mark.parametrize("channel", FORMATS)
def test_each_has_name_start_severity_reason_first_step_and_link(channel: str) -> None:
    document = DOCUMENTS["escalated"]
    made = FORMATS[channel](document)
    text = made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)
    if channel == "email":
        text = message_from_bytes(text.encode("ascii"), policy=default).get_content()
    if channel == "slack":
        text = text.replace("&amp;", "&")
    for said in (
        document["summary"],
        "2026-11-21 03:00:15 UTC",
        "12,000 unread records",
        "432 s (7 min 12 s)",
        document["sentence"],
        document["outlook"],
        document["first_command"],
        document["dashboard_url"],
    ):
        assert said in text, said


def strings(node: Any) -> Iterator[str]:
    """Every text in a tree."""
    if isinstance(node, str):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from strings(value)


@pytest.mark.parametrize("document", STRANGERS, ids=range(len(STRANGERS)))
@pytest.mark.parametrize("channel", ["pagerduty", "slack", "teams", "email", "apprise"])
def test_no_control_character_or_override_reaches_a_screen(channel: str, document: Document) -> None:
    for text in strings(FORMATS[channel](document)):
        assert not set(text) & set("\u202e\u202c\x1b\r\U000e0041")


class TestAlertmanager:
    #: `postableAlerts` of Alertmanager's OpenAPI document, and what it checks beside it.
    SCHEMA: ClassVar[dict[str, Any]] = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["labels"],
            "additionalProperties": False,
            "properties": {
                "labels": {
                    "type": "object",
                    "required": ["alertname"],
                    "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
                    "additionalProperties": {"type": "string", "minLength": 1},
                },
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                "startsAt": {"type": "string", "format": "date-time"},
                "endsAt": {"type": "string", "format": "date-time"},
                "generatorURL": {"type": "string", "pattern": "^https?://[!-~]+$"},
            },
        },
    }

    @pytest.mark.parametrize("document", [*DOCUMENTS.values(), *STRANGERS], ids=str)
    def test_alerts_are_what_its_interface_takes(self, document: Document) -> None:
        alerts = alertmanager.payload(document, None, PUSHED, NOW)
        Draft202012Validator(self.SCHEMA, format_checker=FormatChecker()).validate(alerts)
        for alert in alerts:
            assert alert["startsAt"] <= alert["endsAt"]

    def test_what_fires_ends_by_itself_long_after_the_next_repeat(self) -> None:
        (alert,) = alertmanager.payload(DOCUMENTS["firing"], None, PUSHED, NOW)
        assert alert["endsAt"] == "2026-11-21T04:14:15.000Z"

    def test_what_is_over_has_the_end_that_was_seen(self) -> None:
        (alert,) = alertmanager.payload(DOCUMENTS["resolved"], DOCUMENTS["escalated"], PUSHED, NOW)
        assert alert["endsAt"] == DOCUMENTS["resolved"]["ended_at"]

    def test_another_severity_ends_the_alert_that_alertmanager_had(self) -> None:
        new, old = alertmanager.payload(DOCUMENTS["escalated"], DOCUMENTS["firing"], PUSHED, NOW)
        assert (new["labels"]["severity"], new["endsAt"]) == ("critical", "2026-11-21T04:14:15.000Z")
        assert (old["labels"]["severity"], old["endsAt"]) == ("warning", DOCUMENTS["escalated"]["decided_at"])
        assert old["labels"] | {"severity": "critical"} == new["labels"]

    def test_the_end_is_that_of_the_alert_that_alertmanager_has(self) -> None:
        notified = DOCUMENTS[
            "firing"
        ]  # a warning; the loudest of the incident, which this channel was not told, was a page
        (alert,) = alertmanager.payload(DOCUMENTS["resolved"], notified, PUSHED, NOW)
        assert alert["labels"]["severity"] == "warning"
        assert alert["endsAt"] == DOCUMENTS["resolved"]["decided_at"]

    def test_labels_of_the_owner_get_names_that_alertmanager_allows(self) -> None:
        owned = DOCUMENTS["firing"] | {"team": "shop", "labels": {"team": "shop", "cost-centre": "7", "2nd.line": "x"}}
        (alert,) = alertmanager.payload(owned, None, PUSHED, NOW)
        Draft202012Validator(self.SCHEMA).validate([alert])
        assert {"team": "shop", "cost_centre": "7", "_2nd_line": "x"}.items() <= alert["labels"].items()

    def test_a_message_queued_by_an_earlier_version_is_sent(self) -> None:
        later = ("team", "labels", "flapping", "times_begun")
        former = {name: value for name, value in DOCUMENTS["firing"].items() if name not in later}
        for made in FORMATS.values():
            assert made(former)

    def test_a_dashboard_without_an_address_is_left_out(self) -> None:
        (alert,) = alertmanager.payload(DOCUMENTS["firing"] | {"dashboard_url": "lagwise/group"}, None, PUSHED, NOW)
        assert "generatorURL" not in alert

    @pytest.mark.parametrize("name", ["firing", "resolved"])
    def test_receivers_get_the_keys_and_types_that_alertmanager_sends(self, name: str) -> None:
        """What an Alertmanager 0.25 posted when it was given the alert by the other channel."""
        recorded = json.loads((Path(__file__).parent / "alertmanager_0.25.json").read_text(encoding="utf-8"))[name]
        made = alertmanager_webhook.payload(DOCUMENTS[name], RECEIVER)
        for ours, theirs in ((made, recorded), (made["alerts"][0], recorded["alerts"][0])):
            assert {key: type(value) for key, value in ours.items()} == {k: type(v) for k, v in theirs.items()}
        for key in ("version", "status", "groupLabels", "truncatedAlerts"):
            assert made[key] == recorded[key]
        assert made["alerts"][0]["labels"] == recorded["alerts"][0]["labels"]
        ends = [payload["alerts"][0]["endsAt"] for payload in (made, recorded)]
        assert len({end.startswith("0001-01-01T00:00:00") for end in ends}) == 1

    def test_the_receiver_sees_one_group_from_beginning_to_end(self) -> None:
        made = [alertmanager_webhook.payload(DOCUMENTS[n], RECEIVER) for n in ("firing", "escalated", "resolved")]
        assert [m["status"] for m in made] == ["firing", "firing", "resolved"]
        for key in ("groupKey", "groupLabels"):
            assert len({json.dumps(m[key]) for m in made}) == 1
        assert len({m["alerts"][0]["fingerprint"] for m in made}) == 1


class TestPagerDuty:
    @pytest.mark.parametrize("document", [*DOCUMENTS.values(), *STRANGERS], ids=str)
    def test_limits(self, document: Document) -> None:
        event = pagerduty.payload(document, KEY)
        assert 1 <= len(event["payload"]["summary"]) <= pagerduty.LONGEST_SUMMARY
        assert len(event["dedup_key"]) <= 255
        assert len(json.dumps(event)) < 512_000
        assert event["payload"]["severity"] in ("critical", "error", "warning", "info")
        assert event["payload"]["source"]

    def test_one_key_from_beginning_to_end(self) -> None:
        made = [pagerduty.payload(DOCUMENTS[name], KEY) for name in ("firing", "escalated", "resolved")]
        assert [m["event_action"] for m in made] == ["trigger", "trigger", "resolve"]
        assert {m["dedup_key"] for m in made} == {DOCUMENTS["firing"]["incident_id"]}


class TestSlack:
    @pytest.mark.parametrize("document", [*DOCUMENTS.values(), *STRANGERS, *MANY], ids=str)
    def test_limits(self, document: Document) -> None:
        made = slack.payload(document)
        blocks = made["blocks"]
        assert len(blocks) <= slack.MAX_BLOCKS
        assert len(blocks[0]["text"]["text"]) <= slack.LONGEST_HEADER
        for section in (b for b in blocks if b["type"] == "section"):
            assert len(section.get("text", {"text": ""})["text"]) <= slack.LONGEST_SECTION
            assert len(section.get("fields", [])) <= slack.MAX_FIELDS
            assert all(1 <= len(f["text"]) <= slack.LONGEST_FIELD for f in section.get("fields", []))
        assert sum(map(len, strings(blocks))) <= slack.MAX_CHARACTERS

    @pytest.mark.parametrize("document", [*STRANGERS, *MANY], ids=range(len(STRANGERS + MANY)))
    def test_nothing_of_a_stranger_is_obeyed(self, document: Document) -> None:
        made = slack.payload(document)
        ours = [node for node in _nodes(made["blocks"]) if node.get("type") == "mrkdwn"]
        assert all(set(node["text"]) & set("<>") == set("<>") and node["text"].count("<") == 1 for node in ours)
        assert not set(made["text"]) & set("<>")
        assert "&amp;amp;" in slack.payload(DOCUMENTS["hostile"])["text"]

    @settings(max_examples=50)
    @given(st.text(max_size=60))
    def test_escaped_text_has_neither_tags_nor_open_entities(self, text: str) -> None:
        made = slack.mrkdwn(text)
        assert not set(made) & set("<>")
        assert made.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(value)


class TestTeams:
    @pytest.mark.parametrize("document", [*DOCUMENTS.values(), *STRANGERS, *MANY], ids=str)
    def test_limits(self, document: Document) -> None:
        text = json.dumps(teams.payload(document), ensure_ascii=False)
        wrapped = json.dumps(text, ensure_ascii=False)
        assert len(wrapped.encode("utf-8")) < TEAMS_MAX_BYTES * 0.9

    @pytest.mark.parametrize("document", [*STRANGERS, *MANY], ids=range(len(STRANGERS + MANY)))
    def test_text_stands_where_markdown_is_not_obeyed(self, document: Document) -> None:
        (attachment,) = teams.payload(document)["attachments"]
        card = attachment["content"]
        assert {element["type"] for element in card["body"]} == {"RichTextBlock"}
        assert {run["type"] for element in card["body"] for run in element["inlines"]} == {"TextRun"}


class TestMail:
    @pytest.mark.parametrize("document", [*DOCUMENTS.values(), *STRANGERS, *MANY], ids=str)
    def test_headers_are_ours_alone(self, document: Document) -> None:
        raw = mail(document, MAILED).as_bytes()
        raw.decode("ascii")
        assert max(map(len, raw.split(b"\r\n"))) <= 998
        read = message_from_bytes(raw, policy=default)
        assert set(read.keys()) <= {
            *("From", "To", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted"),
            *("X-Lagwise-Event", "X-Lagwise-Severity", "Importance", "MIME-Version"),
            *("Content-Type", "Content-Transfer-Encoding"),
        }
        assert read["Bcc"] is None
        assert [address.addr_spec for address in read["To"].addresses] == list(MAILED.to)
        assert [address.addr_spec for address in read["From"].addresses] == [MAILED.sender]
        assert read["Subject"].isprintable()
        assert not read.defects

    def test_one_conversation(self) -> None:
        first, worse, over = (mail(DOCUMENTS[name], MAILED) for name in ("firing", "escalated", "resolved"))
        assert first["In-Reply-To"] is None
        for later in (worse, over):
            assert later["In-Reply-To"] == later["References"] == first["Message-ID"]
            assert later["Subject"] == f"Re: {first['Subject']}"
        assert len({m["Message-ID"] for m in (first, worse, over)}) == 3

    def test_a_retry_is_the_same_mail(self) -> None:
        assert mail(DOCUMENTS["firing"], MAILED).as_bytes() == mail(DOCUMENTS["firing"], MAILED).as_bytes()

    @settings(max_examples=60)
    @given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=120))
    def test_any_name_makes_one_subject(self, name: str) -> None:
        read = message_from_bytes(mail(of_group(name), MAILED).as_bytes(), policy=default)
        assert read["Bcc"] is None
        assert read["Subject"].startswith("[Lagwise] Group ")


@pytest.mark.parametrize("channel", sorted(TAKE_SUMMARIES - {"webhook"}))
def test_a_summary_names_its_alerts_or_says_how_many_more_there_are(channel: str) -> None:
    def notified(document: Document) -> str:
        made = FORMATS[channel](document)
        text = made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)
        return str(message_from_bytes(text.encode(), policy=default).get_content()) if channel == "email" else text

    few = notified(SUMMARIES["summary"])
    assert all(DOCUMENTS[name]["summary"] in few for name in ("firing", "escalated", "resolved", "collection"))
    many = notified(SUMMARIES["summary_many"])
    shown = sum(f"group-{i:03}" in many for i in range(300))
    assert shown == 300 or f"and {300 - shown} more, see the dashboard" in many


def test_the_hostile_name_is_hostile() -> None:
    for attack in ("<script>", "*b*", "```", "](http", "<!channel>", "\r\nBcc:", "\x1b", "\u202e"):
        assert attack in HOSTILE

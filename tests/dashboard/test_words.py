"""GroupNumbers, names and commands as people see them."""

import subprocess
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lagwise.config import Cluster, Config
from lagwise.domain import humanise
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import DISPLAY_ORDER, Status, UnknownReason
from lagwise.links.first_commands import shell_word
from lagwise_alerts.model import Alert, AlertKind, AlertState, AlertSubject, Severity
from lagwise_dashboard import appearance, escaping
from lagwise_dashboard.pages.group import first_steps
from lagwise_dashboard.widgets import alert_words, partition_names
from tests.dashboard.stories import HOSTILE_NAMES

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0 s"),
        (0.0001, "< 1 ms"),
        (0.02, "20 ms"),
        (0.42, "0.4 s"),
        (3.0, "3 s"),
        (3.24, "3.2 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (86400 * 3 + 3600 * 4, "3 d 4 h"),
        (1e12, "> 1 year"),
        (-5, "0 s"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert humanise.duration(seconds) == text


def test_a_lower_bound_is_marked_and_an_unknown_one_is_not() -> None:
    assert humanise.duration(200, lower_bound=True) == "≥ 3 min 20 s"
    assert humanise.duration(None, lower_bound=True) == "—"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "—"),
        (0, "0"),
        (842, "842"),
        (9999, "9,999"),
        (41_234, "41,234"),
        (999_499, "999,499"),
        (999_999, "999,999"),
        (1_000_000, "1.00 M"),
        (3_400_000, "3.40 M"),
        (8_930_000_000, "8.93 G"),
        (-41_234, "-41,234"),
    ],
)
def test_counts(number: float | None, text: str) -> None:
    assert humanise.count(number) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "—"), (0.0, "0"), (0.004, "< 0.01"), (0.12, "0.12"), (42.34, "42.3"), (240.6, "241"), (41_234.0, "41,234")],
)
def test_rates(rate: float | None, text: str) -> None:
    assert humanise.rate(rate) == text


def test_sizes() -> None:
    assert [humanise.size(n) for n in (None, 0, 999, 34_567, 1_640_000)] == ["—", "0 B", "999 B", "34.6 kB", "1.64 MB"]


def test_times_are_utc_and_dated_where_it_is_not_today() -> None:
    assert humanise.clock(NOW - timedelta(hours=1), NOW) == "11:00:00 UTC"
    assert humanise.clock(NOW - timedelta(hours=13), NOW) == "2026-11-20 23:00:00 UTC"
    assert humanise.clock(None, NOW) == "—"
    in_kolkata = timezone(timedelta(hours=5, minutes=30))
    assert humanise.clock(NOW - timedelta(hours=13), NOW, in_kolkata) == "04:30:00 UTC+5:30", "today there"
    assert humanise.since(NOW - timedelta(seconds=75), NOW) == "1 min 15 s"
    assert humanise.since(NOW + timedelta(seconds=5), NOW) == "0 s", "a clock that runs ahead is no negative age"


@pytest.mark.parametrize(
    ("minutes", "text"),
    [(0, "UTC"), (60, "UTC+1"), (-210, "UTC−3:30"), (345, "UTC+5:45"), (-720, "UTC−12"), (0.5, "UTC+0:00:30")],
)
def test_offsets_from_utc(minutes: float, text: str) -> None:
    assert humanise.utc_offset(timedelta(minutes=minutes)) == text


def test_every_status_and_reason_has_its_words() -> None:
    assert set(appearance.STATUS_APPEARANCES) == set(Status)
    assert set(DISPLAY_ORDER) == set(Status)
    assert set(appearance.REASONS) == set(UnknownReason)
    assert len({look.sign for look in appearance.STATUS_APPEARANCES.values()}) == len(Status), (
        "never colour alone: each has its own sign"
    )


def test_a_word_of_a_newer_version_is_shown_as_it_is() -> None:
    assert appearance.of_status("melting").label == "? melting"
    assert appearance.label("unknown", "no_commit") == "? unknown: no commit"
    assert appearance.reason_in_words("solar_flare") == "solar flare"
    assert appearance.reason_in_words(None) is None


@pytest.mark.parametrize("status", Status)
def test_white_text_is_readable_on_every_status(status: Status) -> None:
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5 to 1."""
    channels = [int(appearance.STATUS_APPEARANCES[status].colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    assert 1.05 / (luminance + 0.05) >= 4.5


def test_markdown_is_escaped() -> None:
    assert escaping.markdown("a_b*c") == r"a\_b\*c"
    assert escaping.markdown(":streamlit:") == "\\:\u2060streamlit\\:"
    assert escaping.markdown("http://x") == "http\\:\u2060\\/\\/x"
    assert escaping.markdown("orders-v2") == r"orders\-v2", "nothing invisible where nothing needs it"
    assert escaping.markdown(None) == ""


def test_what_cannot_be_seen_is_shown() -> None:
    assert escaping.visible("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert escaping.visible("\u202eevil") == "\\u202eevil"
    assert escaping.plotly("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"
    assert len(escaping.plotly("x" * 249)) == 60


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "-rf", "plain", "it's", "a\\b'c\n", "$(reboot)"])
def test_a_pasted_command_gives_the_name_to_the_program_and_nothing_else(name: str) -> None:
    found = subprocess.run(
        ["bash", "-c", f"set -- {shell_word(name)}; printf %s \"$1\""], capture_output=True, check=True, timeout=10,
        env={"LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert found.stdout.decode() == name
    assert escaping.visible(shell_word(name)) == shell_word(name), "no invisible character is pasted"


def test_the_commands_name_the_cluster_and_its_sign_in() -> None:
    config = Config(
        clusters=(
            Cluster(name="prod", bootstrap="a:9093", librdkafka={"security.protocol": "SASL_SSL"}),
            Cluster(name="plain", bootstrap="b:9092"),
        )
    )
    first = first_steps.for_group(config, _row("prod", "my group", topic="orders"))
    assert first[0].text == (
        "kafka-consumer-groups --bootstrap-server a:9093 --command-config client.properties --describe "
        "--group='my group'"
    )
    assert first[-1].text.endswith("--group='my group' --topic=orders --reset-offsets --to-latest --dry-run")
    assert "--execute" not in " ".join(c.text for c in first)
    assert first[2].text == "lagwise lag --data=./lagwise-data --cluster=prod 'my group'"
    second = first_steps.for_group(config, _row("plain", "-x"))
    assert second[0].text == "kafka-consumer-groups --bootstrap-server b:9092 --describe --group=-x"
    assert second[2].text == "lagwise lag --data=./lagwise-data --cluster=plain -- -x"
    assert first_steps.for_group(config, _row("gone", "g"))[0].text.startswith(
        "kafka-consumer-groups --bootstrap-server HOST:PORT "
    )


def test_the_command_to_begin_with_comes_first_and_none_comes_twice() -> None:
    stalled = first_steps.for_group(Config(), _row("kafka", "g", status="stalled"))
    assert stalled[0].purpose == "Members and what each of them owns"
    threatened = first_steps.for_group(Config(), _row("kafka", "g", status="at_risk", cause="deletion", topic="t"))
    assert threatened[0].text.startswith("kafka-configs ")
    unread = _row("kafka", "g", status="at_risk", cause="deletion", topic="t", stands_still=True)
    assert first_steps.for_group(Config(), unread)[0].purpose == "Members and what each of them owns"
    held_back = first_steps.for_group(
        Config(), _row("kafka", "g", status="stalled", topic="t", transaction_seconds=4500.0)
    )
    assert held_back[0].text == "kafka-transactions --bootstrap-server HOST:PORT find-hanging --topic=t"
    assert held_back[0].purpose.startswith("The hanging transaction")
    for found in (stalled, threatened, held_back):
        assert len({c.text for c in found}) == len(found)


def _row(
    cluster: str,
    group: str,
    *,
    topic: str | None = None,
    status: str = "ok",
    cause: str | None = None,
    transaction_seconds: float | None = None,
    stands_still: bool = False,
) -> dict[str, object]:
    return {
        "cluster": cluster,
        "group": group,
        "worst_topic": topic,
        "status": status,
        "reason": None,
        "loss_cause": cause,
        "transaction_seconds": transaction_seconds,
        "stands_still": stands_still,
    }


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([1, 0], "0, 1"), ([0, 1, 2, 3, 7], "0–3, 7"), (list(range(0, 60, 2)), None)],
)
def test_partition_ranges(numbers: list[int], text: str | None) -> None:
    found = partition_names.ranges(numbers)
    assert found == text if text is not None else found.endswith(" …")


@pytest.mark.parametrize(
    ("kind", "about", "mark"),
    [
        (AlertKind.GROUP, "orders (kafka)", "Alert ▲ warn: ok"),
        (AlertKind.LEFT_TOPICS, "left topics: orders (kafka)", "Alert ▲ warn: left topics"),
    ],
)
def test_an_alert_on_a_finding_is_called_after_it(kind: AlertKind, about: str, mark: str) -> None:
    """The group's status beside it may well be ok."""
    row = Alert(
        incident_id="i",
        fingerprint="f",
        subject=AlertSubject(kind, "kafka", "orders"),
        rule="r",
        severity=Severity.WARN,
        status="ok",
        reason=None,
        state=AlertState.FIRING,
        since=NOW,
        started_at=NOW,
        last_as_of=NOW,
        fired_at=NOW,
        sentence="",
        numbers=GroupNumbers(),
        rule_timers=(),
        clear_timer=None,
    )
    assert (alert_words.about(row), alert_words.began_text(row)) == (about, mark)

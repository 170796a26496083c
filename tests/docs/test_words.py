"""The pages on statuses and traces use the words of the code: all of them, and no other."""

import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.verdicts.burrow import Code
from benchmarks.verdicts.seen import TROUBLE
from lagwise.config import Cluster
from lagwise.config.model import AnalysisSettings
from lagwise.domain.causes import Scope
from lagwise.domain.cluster_findings import ClusterFindingKind
from lagwise.domain.loss.skips import FROM_LOG_START
from lagwise.domain.verdicts import (
    buckets,
    changes,
    direction,
    samples,
    status,
    trend,
    troughs,
    turns,
    usual_pauses,
    windows,
)
from lagwise.domain.vocabulary import SIMPLE, LossCause, Status, UnknownReason
from lagwise.traces import csv_files
from lagwise.traces.trace import read_trace
from lagwise_alerts.rules.rule_file import load_rules
from lagwise_app.replay.shown import NUMBERS, Shown

ROOT = Path(__file__).resolve().parents[2]
STATUSES = (ROOT / "docs" / "statuses.md").read_text(encoding="utf-8")
RULES = (ROOT / "docs" / "status-rules.md").read_text(encoding="utf-8")
TRACES = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
FOLDERS = sorted(path.parent for path in (ROOT / "tests" / "traces").glob("*/trace.toml"))

#: The keys of a line of ``lagwise replay --json``, in order: others read them, so none may go or change its place.
KEYS_OF_A_LINE = [
    "trace",
    "time_s",
    "group",
    "topic",
    "partition",
    "status",
    "reason",
    "reasons",
    "lag",
    "lag_seconds",
    "lag_seconds_is_lower_bound",
    "produce_rate_per_second",
    "consume_rate_per_second",
    "seconds_to_catch_up",
    "seconds_to_loss",
    "records_lost",
]


def table(page: str, first_heading: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading, without the bars."""
    lines = page.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {first_heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def code(text: str) -> list[str]:
    """The words in code style, with lists split."""
    return [word for span in re.findall(r"`([^`]+)`", text) for word in re.split(r",\s*", span)]


class TestStatuses:
    """The page for the night."""

    ROWS = (*table(STATUSES, "status"), *table(STATUSES, "`unknown` because of"))

    def test_every_status_is_explained_in_its_rank_and_no_other(self) -> None:
        assert [row[0] for row in table(STATUSES, "status")] == [f"`{s}`" for s in Status]

    def test_every_reason_is_explained_in_the_order_of_their_tests_and_no_other(self) -> None:
        assert [row[0] for row in table(STATUSES, "`unknown` because of")] == [f"`{r}`" for r in UnknownReason]

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
    def test_each_has_a_meaning_and_a_first_step(self, row: list[str]) -> None:
        _, meaning, first_thing = row
        assert min(len(meaning), len(first_thing)) >= 4

    def test_it_fits_on_a_screen(self) -> None:
        assert len(STATUSES.splitlines()) <= 40
        assert max(len(cell) for row in self.ROWS for cell in row) <= 80

    def test_its_numbers_are_those_of_the_rules(self) -> None:
        text = " ".join(STATUSES.split())
        assert f"within {AnalysisSettings().risk_horizon_seconds / 3600:g} h" in text
        assert f"than its objective ({Cluster.model_fields['lag_objective_seconds'].default:g} s)" in text

    def test_words_in_code_style_exist(self) -> None:
        known = {*Status, *UnknownReason, "auto.offset.reset", "lagwise size", "lagwise status", "lagwise lag GROUP"}
        assert set(code(STATUSES)) <= known


#: Burrow's words, for those who come from there. No code of the product has them: this is what the page shall say.
BURROW_WORDS: dict[Status, str] = {
    Status.LOSING_DATA: "ERR",
    Status.AT_RISK: "WARN",
    Status.STOPPED: "STOP",
    Status.STALLED: "STALL",
    Status.REWOUND: "REWIND",
    Status.FALLING_BEHIND: "WARN",
    Status.LAGGING: "WARN",
    Status.CATCHING_UP: "OK",
    Status.OK: "OK",
    Status.GHOST: "OK",
    Status.UNKNOWN: "NOTFOUND",
}


class TestRules:
    """The page of the exact rules."""

    def test_every_status_is_explained_in_its_rank_and_no_other(self) -> None:
        assert [row[0] for row in table(RULES, "status")] == [f"`{s}`" for s in Status]

    def test_every_reason_is_explained_in_the_order_of_their_tests_and_no_other(self) -> None:
        assert [row[0] for row in table(RULES, "reason")] == [f"`{r}`" for r in UnknownReason]

    @pytest.mark.parametrize("row", [*table(RULES, "status"), *table(RULES, "reason")], ids=lambda row: row[0])
    def test_each_has_its_condition(self, row: list[str]) -> None:
        assert len(row[1]) > 10

    @pytest.mark.parametrize("row", table(RULES, "status"), ids=lambda row: row[0])
    def test_burrow_s_word_stays_and_is_as_alarming_as_the_status(self, row: list[str]) -> None:
        status_, word = Status(row[0].strip("`")), row[-1]
        assert word == BURROW_WORDS[status_]
        assert (Code[word] >= Code.WARN) == (status_ in TROUBLE)
        assert (Code[word] is Code.NOTFOUND) == (status_ is Status.UNKNOWN)

    def test_words_in_code_style_exist(self) -> None:
        """Except for columns, commands and files."""
        columns = {
            "reasons",
            "lag_seconds",
            "seconds_to_loss",
            "seconds_to_loss_is_upper_bound",
            "seconds_to_loss_at_latest",
            "rewound_records",
            "rewound_at",
            "loss_cause",
            "transaction_seconds",
            "cause",
            "skip_control_records",
            "findings",
            "side_topics",
            "since",
            "records_lost",
            "lost_at_least",
            "lost_at_most",
            "first_lost_at",
            "last_lost_at",
            "commit_skipped",
        }
        columns |= {"produce_rate_per_second", "consume_rate_per_second"}
        kafka = {"auto.offset.reset", "earliest", "latest", "retention.ms", "retention.bytes", "segment.ms"}
        kafka |= {"Log", "UnifiedLog", "deletableSegments", "deleteRetentionMsBreachedSegments"}
        kafka |= {"transaction.max.timeout.ms", "kafka-transactions"}
        words = {FROM_LOG_START, "lagwise size", "lagwise lag"}
        known = {*Status, *UnknownReason, *LossCause, *Scope, SIMPLE, *columns, *kafka, *words}
        assert {word for word in code(RULES) if "/" not in word} <= known

    @pytest.mark.parametrize(
        ("says", "seconds"),
        [
            ("within the horizon ({} h)", AnalysisSettings().risk_horizon_seconds / 3600),
            ("older than the group's objective ({} s)", Cluster.model_fields["lag_objective_seconds"].default),
            ("lies above {} % of the produce rate", 100 * direction.TREND_SHARE_OF_PRODUCE_RATE),
            ("no more than {} times the rate of an hour", direction.RISE_OF_LOAD),
            ("narrower than {} of what the samples say", trend.SHARE_OF_SAWTOOTH),
            ("commits are more than {} s apart", buckets.MINUTE_SECONDS / windows.CADENCES_PER_BLOCK),
            ("for three of its own commit cadences (at least {} s;", status.STALLED_AFTER_SECONDS),
            ("at least {} s with an owner", status.STALLED_AFTER_SECONDS),
            ("and {} s without", status.STOPPED_AFTER_SECONDS),
            ("{} s before two commits have been seen", status.UNSEEN_AFTER_SECONDS),
            ("{} s in a group that is none", status.UNSEEN_SIMPLE_AFTER_SECONDS),
        ],
    )
    def test_its_numbers_are_those_of_the_rules(self, says: str, seconds: float) -> None:
        assert says.format(f"{seconds:g}") in " ".join(RULES.split())

    def test_its_numbers_in_words_are_those_of_the_rules(self) -> None:
        """Where one of these changes, so must the page."""
        text = " ".join(RULES.split())
        assert "fewer than three samples" in text and status.MINIMUM_SAMPLES == 3
        assert "three commit cadences" in text and status.TELLING_CADENCES == 3
        assert "more than 16 minutes" in text and samples.TRANSACTION_HANGS_AFTER_SECONDS == 16 * 60
        assert "before two commits" in text and status.COMMITS_OF_RHYTHM == 2
        assert "it is six cadences" in text and status.TELLING_CADENCES * status.CADENCE_IF_RARE == 6
        assert "before ten commits" in text and status.COMMITS_OF_RHYTHM_IF_RARE == 10
        assert "over one of three windows" in text and len(windows.WINDOWS_SECONDS) == 3
        assert "at least half of that slope" in text and direction.SHARE_OF_GROWTH == 0.5
        assert "a quarter of the objective" in text and direction.SHARE_OF_OBJECTIVE == 0.25
        assert "It ends two minutes after" in text and status.SETTLED_AFTER_SECONDS == 120
        assert "a pause of at least two minutes" in text and changes.OUTAGE_SECONDS == 120
        assert "at least four times the cadence" in text and changes.CADENCES_OF_OUTAGE == 4
        assert "are longer than half of it" in text and changes.SHARE_OF_OUTAGE == 0.5
        assert "at least half of all that was lost" in text and changes.SHARE_OF_LEAP == 0.5
        assert "if three within the last hour" in text and usual_pauses.PAUSES_OF_RHYTHM == 3
        assert "in at least two hours" in text and usual_pauses.HOURS_OF_USUAL_PAUSE == 2
        assert "in a quarter of those" in text and usual_pauses.SHARE_OF_HOURS == 0.25
        assert "less than five minutes" in text and buckets.LONG_PAUSE_SECONDS == 300
        assert "three pauses of five minutes or more" in text
        assert "if they last six hours or more" in text and usual_pauses.RARE_PAUSE_SECONDS == 6 * 3600
        assert "no more than twice the squared drop" in text and changes.SHARE_OF_DROP == 0.5
        assert "a pause of half a minute or more" in text and troughs.PAUSE_SECONDS == 30
        assert "more than 1.5 sampling intervals" in text and troughs.INTERVALS_OF_TOOTH == 1.5
        assert "at least half of the lag went" in text and changes.SHARE_OF_LAG == 0.5
        assert "more than half of all within the hour" in text and changes.SHARE_OF_SQUARES == 0.5
        assert "must have 20 steps or more" in text and changes.STEPS_OF_HOUR == 20
        assert "no longer than twice the longest" in text and turns.ABSENCES_OF_PATIENCE == 2
        assert "in the last 5 minutes. Whoever takes turns" in text and turns.TURN_SECONDS == 300
        assert "at least a minute and more than two sampling intervals" in text
        assert (turns.ABSENCE_SECONDS, turns.INTERVALS_OF_ABSENCE) == (60, 2)
        assert "more than half of what it has" in text and turns.SHARE_OF_WAITING == 0.5
        assert "needs a minute of samples" in text and AnalysisSettings().minimum_span_seconds == 60

    def test_the_named_files_contain_what_it_claims(self) -> None:
        assert "The rules are in `lagwise/domain/verdicts/status.py`" in RULES
        assert "those on trends in `lagwise/domain/verdicts/direction.py`" in RULES
        assert "windows they use in `lagwise/domain/verdicts/windows.py`" in " ".join(RULES.split())
        assert {Path(path) for path in code(RULES) if path.endswith(".py")} == {
            Path(str(module.__file__)).relative_to(ROOT) for module in (status, direction, windows)
        }


class TestTraces:
    def test_every_folder_is_named_with_what_is_true_of_it_and_no_other(self) -> None:
        rows = table(TRACES, "trace")
        assert [name for name, _ in rows] == [f"`{folder.name}`" for folder in FOLDERS]
        assert all(len(truth) > 20 for _, truth in rows)

    def test_the_words_claimed_for_a_trace_are_in_its_truth(self) -> None:
        for folder, (_, truth) in zip(FOLDERS, table(TRACES, "trace"), strict=True):
            words = {word for one in read_trace(folder).truth for allowed in one.allowed for word in allowed if word}
            assert {word for span in code(truth) for word in span.split(":")} <= words, folder.name

    def test_a_folder_it_names_exists(self) -> None:
        named = set(re.findall(r"tests/traces/([a-z0-9-]+)(?![\w.])", TRACES))
        assert named <= {folder.name for folder in FOLDERS}

    @pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
    def test_a_trace_has_the_name_of_its_folder_and_a_story(self, folder: Path) -> None:
        head = tomllib.loads((folder / "trace.toml").read_text(encoding="utf-8"))
        assert head["name"] == folder.name
        assert len(head["story"]) > 20

    def test_no_two_traces_have_the_same_story(self) -> None:
        stories = sorted(csv_files.read_head(folder)["story"] for folder in FOLDERS)
        assert [one for one, other in pairwise(stories) if one == other] == []

    @pytest.mark.parametrize("file", csv_files.CSV_FILES)
    def test_the_columns_of_a_file_are_those_that_are_read(self, file: str) -> None:
        documented = {row[0].strip("`"): code(row[1]) for row in table(TRACES, "file")}[file]
        columns = csv_files.CSV_FILES[file]
        assert documented == [column.name for column in columns]
        for path in (folder / file for folder in FOLDERS):
            if path.exists():
                header = path.read_text(encoding="utf-8").partition("\n")[0].split(",")
                optional = {column.name for column in columns if not column.needed}
                assert [name for name in documented if name in header or name not in optional] == header

    def test_every_file_of_a_trace_is_described_and_no_other(self) -> None:
        described = {row[0].strip("`") for row in table(TRACES, "file")}
        assert described == {path.name for folder in FOLDERS for path in folder.iterdir()}

    def test_a_trace_of_ours_has_no_key_in_its_head_that_is_not_described(self) -> None:
        assert {key for folder in FOLDERS for key in csv_files.read_head(folder)} <= set(self.keys_of_the_head())

    def test_every_described_key_of_the_head_is_checked(self, tmp_path: Path) -> None:
        """A key that is not read could hold anything; the error here names the key."""
        assert len(self.keys_of_the_head()) == 8
        for key in self.keys_of_the_head():
            head = {"sample_interval_s": "15", key: "-1"}
            text = "".join(f"{name} = {value}\n" for name, value in head.items())
            (tmp_path / "trace.toml").write_text(text, encoding="utf-8")
            with pytest.raises(csv_files.TraceError, match=f": {key} must be "):
                csv_files.read_head(tmp_path)

    def keys_of_the_head(self) -> list[str]:
        (row,) = (row for row in table(TRACES, "file") if row[0] == "`trace.toml`")
        return code(row[1])


class TestReplay:
    SHOWN = Shown("t", 60.0, "g", "orders", 0, "ok", None, ("ok",), dict.fromkeys(NUMBERS, 0), "All is well.")

    def test_a_line_has_the_keys_that_others_read_in_their_order(self) -> None:
        assert list(json.loads(self.SHOWN.as_json())) == KEYS_OF_A_LINE

    def test_the_page_names_them_in_their_order(self) -> None:
        described = TRACES.partition("prints the keys `")[2].partition("`")[0]
        assert re.split(r",\s+", described) == KEYS_OF_A_LINE

    def test_what_is_not_known_is_null_and_what_is_hostile_stays_on_its_line(self) -> None:
        hostile = 'a"\n\u2028b'
        group = Shown(hostile, 0.0, hostile, None, None, "unknown", "expired", ("unknown",), dict.fromkeys(NUMBERS))
        line = group.as_json()
        assert "\n" not in line
        read = json.loads(line)
        assert (read["trace"], read["group"], read["reasons"]) == (hostile, hostile, ["unknown"])
        assert all(read[key] is None for key in ("topic", "partition", *NUMBERS))


def test_the_page_on_clusters_has_every_finding_and_its_default_rule() -> None:
    page = (ROOT / "docs" / "cluster-findings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page, re.MULTILINE)
    rules = {
        kind: f"`{rule.name}`, {rule.severity.value}"
        for rule in load_rules(None).rules
        for kind in rule.when.cluster_findings
    }
    in_order = [(kind.value, rules.get(kind, "only shown")) for kind in ClusterFindingKind]
    assert rows == in_order

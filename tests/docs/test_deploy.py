"""The rules and the board for Prometheus and Grafana ask for metrics, labels and words that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.vocabulary import Status
from lagwise_app.server.metrics.own_metrics import OWN_METRICS

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "lagwise.rules.yaml").read_text(encoding="utf-8"))
BOARD = json.loads((DEPLOY / "grafana" / "lagwise.json").read_text(encoding="utf-8"))
METRICS = {metric.name: metric for metric in OWN_METRICS}
#: Words that a label may hold, where there is a list of them.
WORDS = {
    "status": set(Status),
    "verdict": set(CapacityVerdict),
    "reason": {"stale", "limit"},
    "kind": {"group", "group_partition", "topic_partition"},
}


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def questions() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            (selector,) = re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"]).groups()  # type: ignore[union-attr]
            yield variable["name"], selector


def selectors(expression: str) -> list[promql_parser.VectorSelector]:
    found: list[promql_parser.VectorSelector] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


@pytest.mark.parametrize(("name", "expression"), [*questions()])
def test_what_is_asked_for_exists(name: str, expression: str) -> None:
    found = selectors(expression)
    assert found, name
    for selector in found:
        if selector.name == "up":
            continue
        labels = METRICS[selector.name].labels
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels
            if matcher.name in WORDS:
                assert set(matcher.value.split("|")) <= WORDS[matcher.name]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_has_all_that_an_alert_needs_and_names_only_labels_that_it_has(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("page", "warn", "info")
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    summary = rule["annotations"]["summary"]
    # Of several that are compared, the alert has the labels of the first; what is absent has none.
    selector, *_ = selectors(rule["expr"])
    has_none = selector.name == "up" or rule["expr"].startswith("absent(")
    labels = set() if has_none else set(METRICS[selector.name].labels)
    assert set(re.findall(r"\$labels\.(\w+)", summary)) <= labels
    assert summary.endswith(".")


def test_series_that_are_compared_have_the_same_labels() -> None:
    """Prometheus finds no pair otherwise, and the rule would never fire."""
    compared = [found for rule in rules() if len(found := selectors(rule["expr"])) > 1]
    assert compared
    for found in compared:
        assert len({tuple(METRICS[str(selector.name)].labels) for selector in found}) == 1


def test_a_cluster_without_verdicts_pages_and_a_removed_one_does_not() -> None:
    asked = {rule["alert"]: {selector.name for selector in selectors(rule["expr"])} for rule in rules()}
    judged, watched = "lagwise_judged_timestamp_seconds", "lagwise_cluster_watched"
    assert asked["LagwiseVerdictsStale"] == {judged, watched, "lagwise_stale_after_seconds"}
    assert asked["LagwiseClusterNotJudged"] == {judged, watched}
    assert asked["LagwiseNothingJudged"] == {judged}


def test_names_are_unique() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    assert [panel["id"] for panel in BOARD["panels"]] == list(range(1, len(BOARD["panels"]) + 1))


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


def test_legends_name_only_labels_that_are_left() -> None:
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            labels = {label for one in selectors(target["expr"]) for label in METRICS[one.name].labels}
            kept = re.match(r"(?:count|sum|max) by \(([\w, ]+)\)", target["expr"])
            known = set(kept.group(1).split(", ")) if kept else labels
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= known, panel["title"]

"""Sizing and forecasts as other programs get them: what the command says, for those who may see the group."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lagwise.config import Config, NameFilter
from lagwise.config.visibility import Visibility
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS
from lagwise.tables.store import Lake
from lagwise_app.answers import forecasts
from lagwise_app.answers.capacity_models import SizingAnswer, SizingInputs
from lagwise_app.answers.forecasts import CapacityUnknown
from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.answers.sizing import AboutGroup, sizing
from lagwise_app.size.bad_question import BadQuestion
from tests.app.judged import append, group
from tests.app.test_size_group import document, forecast, known

pytestmark = pytest.mark.thorough

SETTINGS = Config().analysis.capacity
EVERYTHING = Visibility()
ELSEWHERE = Visibility(groups=NameFilter(exclude=("billing",)))
NODES = {"t1_seconds": 0.012, "t2_seconds": 0.003, "cores": 8, "peak_rate_per_second": 20_000, "partitions": 480}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`billing` reads one topic that grows by 100/s a day, `audit` reads two, and nothing is known of `new`."""
    folder = tmp_path_factory.mktemp("capacity")
    lake = Lake(str(folder / "lake"))
    lake.create(CAPACITY, DEMAND, FORECASTS, GROUP_STATUS)
    append(lake, CAPACITY, known("billing"), known("audit"), known("audit", topic="invoices", verdict="short"))
    append(lake, GROUP_STATUS, *(group(name, "ok", seconds_to_breach=600.0) for name in ("billing", "audit", "new")))
    forecast(folder, lambda day: 18_000.0 + 100.0 * day)
    return folder


@pytest.fixture(scope="module")
def lake(data: Path) -> Lake:
    return Lake(str(data / "lake"))


def asked(lake: Lake, about: AboutGroup | None, horizon: float | None = None, **inputs: Any) -> SizingAnswer:
    given = SizingInputs.model_validate(inputs)
    return sizing(lake, SETTINGS, about, given, horizon, EVERYTHING, datetime.now(UTC))


@pytest.mark.parametrize(
    ("words", "horizon", "inputs"),
    [
        ((), None, {}),
        (("--horizon", "30d"), 30 * 86_400.0, {}),
        (("--peak", "40k", "--spare-nodes", "2"), None, {"peak_rate_per_second": 40_000, "spare_nodes": 2}),
        (("--per-message", "4ms"), None, {"seconds_per_message": 0.004}),
        (("--concurrency", "pool", "--lag", "1M"), None, {"concurrency": "pool", "lag": 1e6}),
    ],
    ids=["as measured", "a horizon", "more", "by members", "a pool"],
)
def test_the_answer_is_that_of_the_command(
    data: Path, lake: Lake, words: tuple[str, ...], horizon: float | None, inputs: dict[str, Any]
) -> None:
    said = document(data, "billing", *words)
    found = asked(lake, AboutGroup("shop", "billing"), horizon, **inputs).model_dump(mode="json")
    assert found["feasible"] is not None
    for name in ("verdict", "feasible", "triple", "binds", "changes", "figures", "node", "missing", "ramp", "what_if"):
        assert found[name] == said[name], name
    assert {n: one["value"] for n, one in found["inputs"].items()} == {
        n: one["value"] for n, one in said["inputs"].items()
    }
    assert {n: said["group"][n] for n in ("verdict", "sentence")} == {
        n: found["group"][n] for n in ("verdict", "sentence")
    }


def test_any_workload_takes_no_lake(lake: Lake) -> None:
    found = asked(lake, None, **NODES)
    assert found.triple is not None
    assert (found.triple.nodes, found.triple.threads_per_node, found.group) == (13, 40, None)
    assert {found.inputs[name].source for name in NODES} == {"given"}
    assert found.inputs["lag"].source == "default"


@pytest.mark.parametrize(
    ("about", "horizon", "inputs", "says"),
    [
        (None, None, {"t1_seconds": 1}, "missing t2_seconds, cores, peak_rate_per_second, partitions: give them"),
        (None, 86_400.0, NODES, "horizon_seconds needs a group"),
        (None, None, NODES | {"cores": -1}, "cores must be a number from 0.01 to 4,096."),
        (None, None, NODES | {"restart_seconds": -1}, "restart_seconds must be from 0 to 1 day (in seconds)."),
        (None, None, NODES | {"seconds_per_message": 1}, "seconds_per_message replaces t1_seconds"),
        (AboutGroup("shop", "audit"), None, {}, "this group reads 'invoices', 'orders': name one as topic"),
        (AboutGroup("shop", "new"), None, {}, "the capacity of this group is not known yet"),
        (AboutGroup("shop", "billing"), 365 * 86_400.0, {}, "the horizon must not exceed that"),
    ],
    ids=["too little", "no group", "range", "range of seconds", "contradiction", "two topics", "too new", "too far"],
)
def test_a_bad_question_is_told_in_the_names_of_the_inputs(
    lake: Lake, about: AboutGroup | None, horizon: float | None, inputs: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadQuestion) as raised:
        asked(lake, about, horizon, **inputs)
    assert says in str(raised.value)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize("inputs", [{"t3": 1}, {"cores": math.nan}, {"partitions": 10**400}, {"unit": "node"}])
def test_inputs_that_are_none(inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SizingInputs.model_validate(inputs)


def told(lake: Lake, name: str, topic: str | None = None, visibility: Visibility = EVERYTHING, **most: int) -> Any:
    limits = {"most_topics": 10, "most_days": 14} | most
    found = forecasts.forecast(lake, "shop", name, topic, visibility, datetime.now(UTC), **limits)
    return json.loads(found.model_dump_json())


def test_a_forecast_is_spread_over_its_days_and_says_what_is_left_out(data: Path, lake: Lake) -> None:
    found = told(lake, "billing")
    [topic] = found["topics"]
    assert (found["status"], found["seconds_to_breach"], found["topics_left_out"]) == ("ok", 600.0, 0)
    assert (topic["capacity"]["verdict"], topic["by"]) == ("tight", "peak")
    days = [day["at"][:10] for day in topic["days"]]
    forecast_days = document(data, "billing")["forecast"]["days"]
    assert (days[0], days[-1]) == (forecast_days[0]["at"][:10], forecast_days[-1]["at"][:10])
    assert days == sorted(set(days))
    assert (len(days), topic["days_left_out"]) == (14, 90 - 14)
    assert topic["days"][-1]["per_second"] == 27_000.0
    assert "busiest minute of each day" in topic["sentence"]


def test_the_worst_topic_comes_first_and_the_others_are_counted(lake: Lake) -> None:
    found = told(lake, "audit", most_topics=1)
    assert [one["capacity"]["topic"] for one in found["topics"]] == ["invoices"]
    assert found["topics_left_out"] == 1
    assert found["topics"][0]["days"] == []
    assert found["topics"][0]["sentence"].startswith("No forecast")
    assert [one["capacity"]["topic"] for one in told(lake, "audit", "orders")["topics"]] == ["orders"]
    assert told(lake, "new")["topics"] == []


def test_a_hidden_group_is_like_an_unknown_one(lake: Lake) -> None:
    def size(visibility: Visibility, name: str) -> None:
        sizing(lake, SETTINGS, AboutGroup("shop", name), SizingInputs(), None, visibility, datetime.now(UTC))

    for name, visibility in (("billing", ELSEWHERE), ("nobody", EVERYTHING)):
        for ask in (lambda: told(lake, name, None, visibility), lambda: size(visibility, name)):  # noqa: B023 (now)
            with pytest.raises(UnknownGroup) as raised:
                ask()
            assert str(raised.value) == f"no group {name!r} is known in cluster 'shop'"


def test_a_topic_that_the_group_does_not_read(lake: Lake) -> None:
    for ask in (lambda: told(lake, "billing", "x"), lambda: asked(lake, AboutGroup("shop", "billing", "x"))):
        with pytest.raises(CapacityUnknown, match="group 'billing' on topic 'x'"):
            ask()

"""The JSON API over real HTTP, from a real lake and database: what is answered, and to whom."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import responses
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from openapi_spec_validator import validate

from lagwise.config import Config
from lagwise.config.server import ServerSettings
from lagwise.platform import health
from lagwise.platform.errors import ConfigError
from lagwise.tables.analysis import GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.raw import EVENTS
from lagwise.tables.store import Lake
from lagwise_alerts.notify.mute_state import Matcher, literal_pattern
from lagwise_alerts.operate import Operator, Via, actions, queries
from lagwise_app.answers.alerts import AlertAnswers
from lagwise_app.answers.context import Context
from lagwise_app.scaling.lake_cache import LakeCache
from lagwise_app.server.access import Access, Caller, RateLimit
from lagwise_app.server.api.routes import PREFIX
from lagwise_app.server.application import Faces, routes
from lagwise_app.server.burrow import burrow_routes
from lagwise_app.server.gate import Counts, Gate
from lagwise_app.server.metrics.documents import MetricsWriter
from lagwise_app.server.refusal import Refusal
from tests.app.test_serve import Served, serving, started
from tests.app.test_size_group import forecast, known
from tests.dashboard import alerts
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, Story
from tests.lake_rows import append, row

pytestmark = pytest.mark.thorough

#: A name that must be escaped in a path.
STRANGE = "a/b %2F?#ü"
STORIES = (
    *GROUPS_OF_THE_DEMO,
    Story(STRANGE, GROUPS_OF_THE_DEMO[0].status, "flat", "It is strange.", topic="strange", lag=7),
)
#: What the limited token may see, and one of each side.
SEEN = [s for s in STORIES if s.cluster == "prod" and s.group.startswith(("payments", "invoice"))]
HIDDEN = [story for story in STORIES if story not in SEEN]
OWN = f"{PREFIX}/clusters/{SEEN[0].cluster}/groups/{SEEN[0].group}"
FOREIGN = f"{PREFIX}/clusters/{HIDDEN[0].cluster}/groups/{quote(HIDDEN[0].group)}"
#: Any workload.
NUMBERS = "t1_seconds=0.012&t2_seconds=0.003&cores=8&peak_rate_per_second=20000&partitions=480"
SIZING = f"{PREFIX}/sizing?{NUMBERS}"

TOKENS = {"admin": "admin-token", "all": "all-token", "limited": "limited-token", "scrape": "scrape-token"}
SETTINGS: dict[str, Any] = {
    "token": "${env:API_ADMIN}",
    "tokens": [
        {"name": "all", "token": "${env:API_ALL}"},
        {
            "name": "limited",
            "token": "${env:API_LIMITED}",
            "clusters": {"include": ["prod"]},
            "groups": {"include": ["payments.*", "invoice.*"]},
        },
        {"name": "scrape", "token": "${env:API_SCRAPE}", "role": "metrics"},
    ],
    "metrics": {"stale_after_seconds": 3600, "name_sets": ["burrow"]},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with alerts, a shared incident, silences, and owners in a file of rules."""
    folder, now = tmp_path_factory.mktemp("api"), datetime.now(UTC)
    lake = write_to(folder, Scene(now, stories=STORIES, hours=0.1))
    event = {"at": now - timedelta(minutes=5), "kind": "rebalance", "cause": "joined", "joined": ["worker-7"]}
    append(lake, EVENTS, [row(EVENTS, cluster="prod", group=SEEN[0].group, **event)])
    changed = {"at": now - timedelta(minutes=40), "before": "ok", "after": str(SEEN[0].status)}
    append(lake, STATUS_CHANGES, [row(STATUS_CHANGES, cluster="prod", group=SEEN[0].group, **changed)])
    sized = [known(SEEN[0].group, cluster="prod"), known(HIDDEN[0].group, cluster=HIDDEN[0].cluster)]
    append(lake, CAPACITY, sized)
    forecast(folder, lambda day: 18_000.0 + 100.0 * day, cluster="prod")
    alerts.write_to(folder, now, STORIES)
    alerts.gather(folder)
    engine = queries.connect(Config.model_validate({"data": str(folder)}))
    matchers = [
        Matcher(cluster="prod", group=literal_pattern(SEEN[0].group)),
        Matcher(cluster="prod", group=f"{SEEN[0].group}|{HIDDEN[0].group}"),
        Matcher(cluster="prod", group=literal_pattern(HIDDEN[0].group)),
        Matcher(severity="info"),
    ]
    for n, matcher in enumerate(matchers):
        ends = now + timedelta(hours=n + 1)
        by = Operator("jo", Via.CLI)
        comment = f"silence {n} of {matcher.group}"
        actions.silence(engine, matcher, starts_at=now, ends_at=ends, comment=comment, by=by, now=now)
    engine.dispose()
    owners = [{"groups": {"include": ["payments.*"]}, "team": "payments"}]
    (folder / "rules.yaml").write_text(json.dumps({"owners": owners, "rules": []}))
    return folder


@pytest.fixture(scope="module")
def served(data: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        for name, token in TOKENS.items():
            patch.setenv(f"API_{name.upper()}", token)
        rules = {"rules_file": str(data / "rules.yaml")}
        with serving(data, TOKENS["admin"], rules, **SETTINGS) as found:
            yield found


def get(served: Served, path: str, who: str = "all") -> tuple[int, dict[str, str], bytes]:
    return served.get(path, Authorization=f"Bearer {TOKENS[who]}")


def answer(served: Served, path: str, who: str = "all") -> dict[str, Any]:
    status, headers, body = get(served, path, who)
    assert (status, headers["content-type"]) == (200, "application/json"), body
    assert headers["cache-control"] == "no-store"
    found: dict[str, Any] = json.loads(body)
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [group["group"] for group in found["groups"]]


#: By address, what those who may not see everything get: without token, with a wrong one, `limited`, `scrape`.
#: `all` and `admin` get everything.
MATRIX = {
    f"{PREFIX}/groups": (401, 401, 200, 403),
    OWN: (401, 401, 200, 403),
    f"{OWN}/partitions": (401, 401, 200, 403),
    FOREIGN: (401, 401, 404, 403),
    f"{FOREIGN}/partitions": (401, 401, 404, 403),
    f"{OWN}/forecast": (401, 401, 200, 403),
    f"{FOREIGN}/forecast": (401, 401, 404, 403),
    f"{OWN}/sizing": (401, 401, 200, 403),
    f"{FOREIGN}/sizing": (401, 401, 404, 403),
    SIZING: (401, 401, 200, 403),
    f"{PREFIX}/alerts": (401, 401, 200, 403),
    f"{PREFIX}/silences": (401, 401, 200, 403),
    f"{PREFIX}/openapi.json": (401, 401, 200, 403),
    "/metrics": (401, 401, 403, 200),
    "/metrics/burrow": (401, 401, 403, 200),
    "/healthz": (200, 200, 200, 200),
    "/readyz": (200, 200, 200, 200),
}


@pytest.mark.parametrize("path", MATRIX)
def test_who_may_ask_what(served: Served, path: str) -> None:
    nobody, wrong = served.get(path)[0], served.get(path, Authorization="Bearer all-tokeN")[0]
    assert (nobody, wrong, get(served, path, "limited")[0], get(served, path, "scrape")[0]) == MATRIX[path]
    assert (get(served, path, "all")[0], get(served, path, "admin")[0]) == (200, 200)


@pytest.mark.parametrize(("story", "limited"), [(SEEN[0], 503), (HIDDEN[0], 404)])
def test_who_may_ask_for_the_scaling_signal(served: Served, story: Story, limited: int) -> None:
    """It is unknown here: nothing in this lake shows what a replica can do."""
    path = f"/scaling/{story.cluster}/{story.group}"
    assert [served.get(path)[0], get(served, path, "scrape")[0]] == [401, 403]
    assert [get(served, path, who)[0] for who in ("limited", "all", "admin")] == [limited, 503, 503]
    assert set(json.loads(get(served, path)[2])) == {"error"}
    assert "watched" in json.loads(get(served, path)[2])["error"]


def test_every_route_is_tested_for_every_token(data: Path) -> None:
    """Here, or for Burrow's in their own module."""
    config = Config.model_validate({"data": str(data)})
    lake = Lake(config.lake_uri)
    gate = Gate(Access([]), RateLimit(1, 1), Counts(), 1)
    context = Context(lake, config, AlertAnswers(config))
    made = routes(gate, Faces(MetricsWriter(lake, config), context, LakeCache(lake)))
    gate.close()
    of_burrow = {route.path for route in burrow_routes(gate, lake, config)}
    group = f"{PREFIX}/clusters/{{cluster:name}}/groups/{{group:name}}"
    exporter = "/metrics/{exporter:name}"
    asked = {
        path.partition("?")[0].replace(OWN, group).replace(FOREIGN, group).replace("/metrics/burrow", exporter)
        for path in MATRIX
    }
    others = {f"{exporter}/{{cluster:rest}}", "/scaling/{cluster:name}/{group:name}"}
    assert {route.path for route in made} == asked | of_burrow | others


@pytest.mark.parametrize("path", MATRIX)
def test_a_limited_token_never_gets_the_name_of_another_group(served: Served, path: str) -> None:
    body = get(served, path, "limited")[2].decode()
    for story in HIDDEN:
        if story.group not in path and story.group not in SEEN[0].group:
            assert json.dumps(story.group)[1:-1] not in body
    assert "staging" not in body
    assert "shared-1" not in body


def test_a_hidden_group_is_like_an_unknown_one(served: Served) -> None:
    hidden = get(served, FOREIGN, "limited")
    unknown = get(served, f"{PREFIX}/clusters/{HIDDEN[0].cluster}/groups/none", "limited")
    assert hidden[0] == unknown[0] == 404
    assert hidden[2].decode().replace(HIDDEN[0].group, "none") == unknown[2].decode()


def test_counts_are_those_of_what_may_be_seen(served: Served) -> None:
    assert answer(served, f"{PREFIX}/groups?limit=1", "limited")["total"] == len(SEEN)
    assert answer(served, f"{PREFIX}/groups?limit=1")["total"] == len(STORIES)


def test_the_document_is_valid_and_every_answer_is_what_it_says(served: Served) -> None:
    document = answer(served, f"{PREFIX}/openapi.json")
    validate(document)
    for path, operations in document["paths"].items():
        sent = path.replace("{cluster}", SEEN[0].cluster).replace("{group}", SEEN[0].group)
        asked = f"{sent}?{NUMBERS}" if path == "/sizing" else sent
        for status, address in (("200", asked), ("400", f"{sent}?unheard=1")):
            (described,) = operations["get"]["responses"][status]["content"].values()
            found = json.loads(get(served, PREFIX + address)[2])
            schema = {**described["schema"], "components": document["components"]}
            jsonschema.validate(found, schema, jsonschema.Draft202012Validator)
            assert found


def test_one_group_with_its_story(served: Served) -> None:
    found = answer(served, OWN, "limited")
    assert found["sentence"] == SEEN[0].sentence
    assert found["owner"] == "payments"
    assert found["is_stale"] is False
    assert len(found["current_members"]) == SEEN[0].members
    assert any(event["kind"] == "rebalance" and event["joined"] == ["worker-7"] for event in found["events"])
    assert found["status_changes"][0]["after"] == found["status"]
    partitions = answer(served, f"{OWN}/partitions?limit=5", "limited")
    assert (partitions["total"], len(partitions["partitions"])) == (SEEN[0].partitions, 5)


def test_a_name_with_a_slash(served: Served) -> None:
    path = f"{PREFIX}/clusters/prod/groups/{quote(STRANGE, safe='')}"
    assert answer(served, path)["group"] == STRANGE
    assert answer(served, f"{path}/partitions")["total"] == STORIES[-1].partitions


@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("status=stopped", lambda s: s.status == "stopped"),
        ("status=stopped&status=ok", lambda s: s.status in ("stopped", "ok")),
        ("cluster=staging", lambda s: s.cluster == "staging"),
        ("cluster=none", lambda s: False),
        ("search=PAYMENTS", lambda s: "payments" in s.group),
        ("search=*-a%3F", lambda s: False),
        ("search=p*t", lambda s: s.group.startswith("p") and s.group.endswith("t")),
        ("owner=payments", lambda s: s.group.startswith("payments")),
        ("owner=nobody", lambda s: False),
    ],
)
def test_filters(served: Served, query: str, keeps: Any) -> None:
    found = answer(served, f"{PREFIX}/groups?{query}")
    assert sorted(names(found)) == sorted(s.group for s in STORIES if keeps(s))
    assert found["total"] == len(found["groups"])


def test_pages_are_parts_of_one_list_worst_first(served: Served) -> None:
    everything = names(answer(served, f"{PREFIX}/groups"))
    parts = [names(answer(served, f"{PREFIX}/groups?limit=7&offset={at}")) for at in range(0, len(STORIES) + 7, 7)]
    assert [name for part in parts for name in part] == everything
    assert parts[-1] == [] or len(parts[-1]) < 7


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("limit=0", "limit: Input should be greater than or equal to 1"),
        ("limit=1001", "limit: Input should be less than or equal to 1000"),
        ("limit=1&limit=2", "limit is given twice"),
        ("status=bad", "status: Input should be 'losing_data'"),
        ("colour=red", "unknown parameter 'colour'"),
    ],
)
def test_a_wrong_query_says_what_is_wrong(served: Served, query: str, says: str) -> None:
    status, headers, body = get(served, f"{PREFIX}/groups?{query}")
    found = json.loads(body)
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert (found["status"], found["title"]) == (400, responses[400])
    assert says in found["detail"]


def test_a_group_is_sized_with_what_is_known_and_what_is_given(served: Served) -> None:
    measured = answer(served, f"{OWN}/sizing", "limited")
    assert measured["group"]["group"] == SEEN[0].group
    assert measured["inputs"]["t1_seconds"]["source"].startswith("probe, from 50,000 messages")
    less = answer(served, f"{OWN}/sizing?topic=orders&peak_rate_per_second=8000&spare_nodes=2", "limited")
    assert less["inputs"]["peak_rate_per_second"] == {"value": 8_000, "source": "given"}
    assert less["triple"]["spare_nodes"] == 2
    assert less["triple"]["capacity_per_second"] < measured["triple"]["capacity_per_second"]
    ahead = answer(served, f"{OWN}/sizing?horizon_seconds=2592000", "limited")
    assert ahead["inputs"]["peak_rate_per_second"]["value"] > measured["inputs"]["peak_rate_per_second"]["value"]


def test_any_workload_is_sized(served: Served) -> None:
    found = answer(served, SIZING)
    assert (found["triple"]["nodes"], found["triple"]["threads_per_node"], found["group"]) == (13, 40, None)


def test_a_forecast_is_of_the_topics_and_days_that_are_asked(served: Served) -> None:
    (whole,) = answer(served, f"{OWN}/forecast", "limited")["topics"]
    (short,) = answer(served, f"{OWN}/forecast?topic=orders&days=3", "limited")["topics"]
    days = whole["days"]
    assert whole["days_left_out"] == 0
    assert short["days"] == [days[0], days[round((len(days) - 1) / 2)], days[-1]]
    assert short["days_left_out"] == len(days) - 3


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        (f"{PREFIX}/sizing", 400, "missing t1_seconds, t2_seconds, cores, peak_rate_per_second, partitions: give them"),
        (f"{SIZING}&cores=0", 400, "cores is given twice"),
        (f"{PREFIX}/sizing?cores=many", 400, "cores: Input should be a valid number"),
        (f"{PREFIX}/sizing?cores=nan", 400, "cores: Input should be a finite number"),
        (SIZING.replace("cores=8", "cores=0"), 400, "cores must be a number from 0.01 to 4,096."),
        (f"{SIZING}&horizon_seconds=1", 400, "unknown parameter 'horizon_seconds'"),
        (f"{OWN}/sizing?horizon_seconds=31000000", 400, "the horizon must not exceed that"),
        (f"{OWN}/sizing?topic=none", 404, "nothing is known of the capacity of group"),
        (f"{OWN}/forecast?topic=none", 404, "nothing is known of the capacity of group"),
        (f"{OWN}/forecast?days=1", 400, "days: Input should be greater than or equal to 2"),
        (OWN.replace(SEEN[0].group, SEEN[1].group) + "/sizing", 400, "is not known yet: the analysis works it out"),
    ],
)
def test_a_question_about_capacity_that_has_no_answer(served: Served, path: str, status: int, says: str) -> None:
    found, headers, body = get(served, path, "limited")
    assert (found, headers["content-type"]) == (status, "application/problem+json")
    assert says in json.loads(body)["detail"]


def test_alerts_are_those_of_visible_groups(served: Served) -> None:
    everything = answer(served, f"{PREFIX}/alerts")["alerts"]
    visible = answer(served, f"{PREFIX}/alerts", "limited")["alerts"]
    assert {alert["group"] for alert in visible} == {a["group"] for a in everything if a["group"]} & {
        s.group for s in SEEN
    }
    assert any(alert["kind"] == "shared_incident" for alert in everything)
    assert any(alert["shared_incident"] == "shared-1" for alert in everything)
    assert {alert["shared_incident"] for alert in visible} == {None}
    assert all(alert["muted"]["cause"] == "silence" for alert in visible if alert["group"] == SEEN[0].group)


def test_silences_that_name_one_visible_group(served: Served) -> None:
    assert answer(served, f"{PREFIX}/silences")["total"] == 4
    (own,) = answer(served, f"{PREFIX}/silences", "limited")["silences"]
    assert own["comment"] == f"silence 0 of {literal_pattern(SEEN[0].group)}"


def test_no_token_is_in_the_heartbeat(served: Served) -> None:
    shown = str(health.read(served.state))
    assert not [token for token in TOKENS.values() if token in shown]


def test_too_many_requests(data: Path) -> None:
    with serving(data, requests_per_second=0.01, burst_requests=3, metrics={"stale_after_seconds": 3600}) as served:
        found = [served.get(f"{PREFIX}/alerts") for _ in range(4)]
        refused = found[-1]
        assert refused[0] == 429
        assert 1 <= int(refused[1]["retry-after"]) <= 100
        assert json.loads(refused[2])["status"] == 429
        assert served.get("/healthz")[0] == 200


def test_the_limit_is_of_each_caller_and_forgets() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 3, lambda: now[0])
    for _ in range(3):
        limit.count("one")
    with pytest.raises(Refusal) as refused:
        limit.count("one")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    limit.count("another")
    now[0] = 0.5
    limit.count("one")
    with pytest.raises(Refusal):
        limit.count("one")
    now[0] = 100.0
    for _ in range(3):
        limit.count("one")
    with pytest.raises(Refusal):
        limit.count("one")


def test_very_many_addresses_share_what_is_left() -> None:
    limit = RateLimit(1.0, 1, lambda: 0.0)
    for n in range(10_001):
        limit.count(f"address {n}")
    with pytest.raises(Refusal):
        limit.count("address of somebody new")


def test_an_answer_that_takes_too_long(data: Path) -> None:
    with serving(data, answer_timeout_seconds=0.0001, metrics={"stale_after_seconds": 3600}) as served:
        status, headers, body = served.get(OWN)
        assert (status, headers["retry-after"]) == (503, "5")
        assert json.loads(body)["detail"] == "the answer took longer than 0.0001 s"


def test_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    """The answer does not say where the lake is."""
    lake = write_to(tmp_path, Scene(datetime.now(UTC), stories=STORIES[:1], hours=0.1))
    for file in Path(lake.location(GROUP_STATUS)).glob("_delta_log/*"):
        file.write_bytes(b"damaged")
    with started(tmp_path) as served:
        status, headers, body = served.get(f"{PREFIX}/groups")
        assert (status, headers["content-type"]) == (503, "application/problem+json")
        assert json.loads(body)["detail"] == "the lake cannot be read"
        assert served.get("/readyz")[::2] == (503, b'{"ok":false,"why":"the lake has not been read yet"}')


def test_a_database_that_cannot_be_read(tmp_path: Path) -> None:
    """Groups are answered all the same."""
    write_to(tmp_path, Scene(datetime.now(UTC), stories=STORIES[:1], hours=0.1))
    (tmp_path / "lagwise.db").write_bytes(b"no database" * 1000)
    with started(tmp_path) as served:
        status, headers, body = served.get(f"{PREFIX}/alerts")
        assert (status, headers["retry-after"]) == (503, "5")
        assert json.loads(body)["detail"] == "the operational database cannot be read"
        assert served.get(f"{PREFIX}/groups")[0] == 200


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("0.0.0.0", 403)])
def test_without_tokens_only_loopback_gets_more_than_metrics(data: Path, host: str, status: int) -> None:
    with serving(data, host=host, metrics={"stale_after_seconds": 3600}) as served:
        assert served.get("/metrics")[0] == served.get("/readyz")[0] == 200
        for path in (f"{PREFIX}/groups", OWN, f"{PREFIX}/openapi.json", "/v3/kafka"):
            assert served.get(path)[0] == status
        assert served.get(f"/scaling/prod/{SEEN[0].group}")[0] == (503 if status == 200 else 403)


@pytest.mark.parametrize("header", [{"Host": "elsewhere.example:8603"}, {"X_Forwarded_For": "192.0.2.1"}])
def test_without_tokens_only_programs_of_this_machine_get_more_than_metrics(data: Path, header: dict[str, str]) -> None:
    """A page in a browser whose name was made to lead here, and what a proxy sends on."""
    with serving(data, metrics={"stale_after_seconds": 3600}) as served:
        for path in (f"{PREFIX}/groups", OWN, "/v3/kafka", f"/scaling/prod/{SEEN[0].group}"):
            assert served.get(path, **header)[0] == 403
            assert served.get(path)[0] in (200, 503)
        assert served.get("/metrics", **header)[0] == 200


def test_two_equal_tokens_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tokens of `server` are the same"):
        Access([("same", Caller("a")), ("same", Caller("b"))])


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([{"name": "a", "role": "metrics", "groups": {"include": ["x"]}}], "metrics are of all groups"),
        ([{"name": "a"}, {"name": "a"}], "the name 'a' is given twice"),
    ],
)
def test_settings_of_tokens(tokens: list[dict[str, Any]], says: str) -> None:
    entries = [{"token": "${env:X}", **one} for one in tokens]
    with pytest.raises(ValueError, match=says):
        ServerSettings.model_validate({"tokens": entries})

"""`lagwise mcp` with the SDK's own client: a process over its streams, a server over HTTP, on a real lake."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from click.testing import CliRunner
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Tool

from lagwise.config import Config
from lagwise.config.visibility import Visibility
from lagwise.domain.vocabulary import DISPLAY_ORDER
from lagwise.platform import health
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.raw import EVENTS
from lagwise.tables.store import Lake
from lagwise_app.answers.alerts import AlertAnswers
from lagwise_app.answers.context import Context
from lagwise_app.assistants import models, tools
from lagwise_app.assistants.serve import serve_http
from lagwise_app.assistants.words import NAMES_ARE_DATA, STATUSES
from lagwise_app.cli import cli
from lagwise_app.supervisor.effective_settings import free_port
from tests.app.judged import HOSTILE
from tests.app.test_size_group import forecast, known
from tests.coroutines import run_apart
from tests.dashboard import alerts
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, Story
from tests.lake_rows import append, row

pytestmark = pytest.mark.thorough

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORIES = (
    *GROUPS_OF_THE_DEMO,
    Story(HOSTILE, GROUPS_OF_THE_DEMO[0].status, "flat", f"{HOSTILE} is strange.", topic=HOSTILE, lag=7),
)
#: What the limited token may see. The first has a capacity, alerts and events.
SEEN = [s for s in STORIES if s.cluster == "prod" and s.group.startswith(("payments", "invoice"))]
HIDDEN = [story for story in STORIES if story not in SEEN]
OWN = {"cluster": "prod", "group": SEEN[0].group}
FOREIGN = {"cluster": HIDDEN[0].cluster, "group": HIDDEN[0].group}
JOINED = [f"worker-{n}" for n in range(40)]

TOKENS = {"all": "all-token", "limited": "limited-token", "scrape": "scrape-token"}
SERVER: dict[str, Any] = {
    "tokens": [
        {"name": "all", "token": "${env:MCP_ALL}"},
        {
            "name": "limited",
            "token": "${env:MCP_LIMITED}",
            "clusters": {"include": ["prod"]},
            "groups": {"include": ["payments.*", "invoice.*"]},
        },
        {"name": "scrape", "token": "${env:MCP_SCRAPE}", "role": "metrics"},
    ]
}
SIZED = {"t1_seconds": 0.012, "t2_seconds": 0.003, "cores": 8, "peak_rate_per_second": 20_000, "partitions": 480}
TOOLS = ("groups_in_trouble", "group_story", "partitions", "what_if_sizing", "forecast")
Transport = AbstractAsyncContextManager[Any]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, now = tmp_path_factory.mktemp("mcp"), datetime.now(UTC)
    lake = write_to(folder, Scene(now, stories=STORIES, hours=0.1))
    for minutes in range(25):
        event = {"at": now - timedelta(minutes=minutes), "kind": "rebalance", "cause": "joined", "joined": JOINED}
        append(lake, EVENTS, [row(EVENTS, **OWN, **event)])
    older = {"at": now - timedelta(hours=10), "kind": "rebalance", "cause": "left"}
    append(lake, EVENTS, [row(EVENTS, **OWN, **older)])
    append(lake, CAPACITY, [known(OWN["group"], cluster="prod"), known(FOREIGN["group"], cluster=FOREIGN["cluster"])])
    forecast(folder, lambda day: 18_000.0 + day)
    alerts.write_to(folder, now, STORIES)
    return folder


@contextmanager
def served(data: Path, server: dict[str, Any], **mcp: Any) -> Iterator[int]:
    """The port of a server that listens, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        for name, token in TOKENS.items():
            patch.setenv(f"MCP_{name.upper()}", token)
        port, stop, state = free_port(), threading.Event(), data / "state"
        config = Config.model_validate({"data": str(data), "server": server, "mcp": {"port": port, **mcp}})
        thread = threading.Thread(target=serve_http, args=(config, stop, state))
        thread.start()
        try:
            while f":{port}/" not in str(health.read(state).get(health.ASSISTANTS)):
                assert thread.is_alive()
                thread.join(0.05)
            yield port
        finally:
            stop.set()
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def port(data: Path) -> Iterator[int]:
    with served(data, SERVER) as found:
        yield found


@asynccontextmanager
async def over_http(port: int, who: str = "all") -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKENS[who]}"}, timeout=60) as client,
        streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client) as streams,
    ):
        yield streams


def over_streams(data: Path) -> Transport:
    command = ["-m", "lagwise_app", "mcp", "--data", str(data)]
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", os.pathsep.join(sys.path))}
    return stdio_client(StdioServerParameters(command=sys.executable, args=command, env=environment))


def asked(transport: Transport, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    """The answers to some calls over one connection."""

    async def ask() -> list[CallToolResult]:
        async with Client(transport) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    return run_apart(ask)


def told(result: CallToolResult) -> dict[str, Any]:
    """What an answer says; its text and its structured content are the same."""
    [content] = result.content
    assert not result.is_error, content
    assert json.loads(content.text) == result.structured_content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def refusal(result: CallToolResult) -> str:
    assert result.is_error
    text: str = result.content[0].text
    return text


def calls(about: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A call of every tool about a group."""
    return [("groups_in_trouble", {"limit": 100}), *((tool, about) for tool in TOOLS[1:])]


def listed(transport: Transport) -> tuple[str, list[Tool]]:
    async def ask() -> tuple[str, list[Tool]]:
        async with Client(transport) as client:
            return client.instructions or "", list((await client.list_tools()).tools)

    return run_apart(ask)


def test_every_tool_over_the_streams_of_a_process_and_the_same_over_http(data: Path, port: int) -> None:
    instructions, offered = listed(over_http(port))
    assert [tool.name for tool in offered] == list(TOOLS)
    assert all(f"- {status}: " in instructions for status in DISPLAY_ORDER)
    for tool in offered:
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert NAMES_ARE_DATA in (tool.description or "")
    by_process = [told(one) for one in asked(over_streams(data), *calls(OWN))]
    by_http = [told(one) for one in asked(over_http(port), *calls(OWN))]
    for tool, answer in zip(offered, by_process, strict=True):
        jsonschema.validate(answer, tool.output_schema)
    assert [without_ages(answer) for answer in by_process] == [without_ages(answer) for answer in by_http]


def without_ages(answer: dict[str, Any]) -> str:
    return re.sub(r"\d+(\.\d+)? (s|min|h) ", "", re.sub(r"\"sentence\": \"The busiest[^\"]*", "", json.dumps(answer)))


def test_a_story_is_bounded_and_says_what_it_leaves_out(port: int) -> None:
    [story, all_day] = map(
        told, asked(over_http(port), ("group_story", {**OWN, "hours": 1}), ("group_story", {**OWN, "hours": 24}))
    )
    assert story["group"]["sentence"].endswith(SEEN[0].sentence)
    assert story["partitions_by_status"]
    assert (len(story["events"]), len(all_day["events"])) == (20, 20)
    assert story["events_left_out"] >= 5
    assert all_day["events_left_out"] == story["events_left_out"] + 1
    crowded = next(event for event in story["events"] if event["joined"])
    assert (crowded["joined"], crowded["names_left_out"]) == (JOINED[:10], 30)
    assert {alert["severity"] for alert in story["alerts"]} <= {"page", "warn", "info"}
    assert story["alerts"]


def test_lists_have_limits(port: int) -> None:
    one, everything, none, too_many, some = asked(
        over_http(port),
        ("groups_in_trouble", {"limit": 1}),
        ("groups_in_trouble", {"limit": 100}),
        ("groups_in_trouble", {"limit": 0}),
        ("partitions", {**OWN, "limit": 1000}),
        ("partitions", {**OWN, "limit": 2}),
    )
    found = told(everything)
    assert told(one)["groups"] == found["groups"][:1]
    assert told(one)["left_out"] == len(found["groups"]) - 1
    assert sum(found["groups_by_status"].values()) == len(STORIES)
    assert "limit" in refusal(none)
    assert "limit" in refusal(too_many)
    assert (len(told(some)["partitions"]), told(some)["left_out"]) == (2, SEEN[0].partitions - 2)
    assert told(some)["partitions"][0]["status"] == str(SEEN[0].status)


def test_what_if(port: int) -> None:
    as_it_is, doubled, alone, too_little, half, no_forecast = asked(
        over_http(port),
        ("what_if_sizing", OWN),
        ("what_if_sizing", {**OWN, "inputs": {"peak_rate_per_second": 40_000}}),
        ("what_if_sizing", {"inputs": SIZED}),
        ("what_if_sizing", {"inputs": {"cores": 8}}),
        ("what_if_sizing", {"cluster": "prod"}),
        ("what_if_sizing", {"inputs": SIZED, "horizon_days": 30}),
    )
    assert told(as_it_is)["inputs"]["peak_rate_per_second"]["source"] != "given"
    assert told(doubled)["inputs"]["peak_rate_per_second"] == {"value": 40_000.0, "source": "given"}
    assert told(alone)["triple"]["nodes"] == 13
    missing = ", ".join(f"inputs.{name}" for name in ("t1_seconds", "t2_seconds", "peak_rate_per_second", "partitions"))
    assert f"missing {missing}" in refusal(too_little)
    assert "cluster and group go together" in refusal(half)
    assert "horizon_days needs a group" in refusal(no_forecast)


def test_a_name_is_data_whatever_is_in_it(port: int) -> None:
    about = {"cluster": STORIES[-1].cluster, "group": HOSTILE}
    trouble, story, found, unknown = asked(
        over_http(port),
        ("groups_in_trouble", {"search": "evil"}),
        ("group_story", about),
        ("partitions", about),
        ("group_story", {**about, "group": HOSTILE + "x"}),
    )
    assert [group["group"] for group in told(trouble)["groups"]] == [HOSTILE]
    assert told(story)["group"]["group"] == HOSTILE
    assert told(found)["partitions"][0]["topic"] == HOSTILE
    for answer in (trouble, story, found):
        assert "\x1b" not in answer.content[0].text
    assert refusal(unknown).isprintable()


#: By token, what asking gets: an HTTP error, or the groups that are seen.
@pytest.mark.parametrize(("sent", "status"), [(None, 401), ("wrong", 401), (TOKENS["scrape"], 403)])
def test_who_may_not_ask(port: int, sent: str | None, status: int) -> None:
    for tool, arguments in calls(OWN):
        answered, _, body = posted(port, tool, arguments, {} if sent is None else {"Authorization": f"Bearer {sent}"})
        assert answered == status
        assert set(json.loads(body)) == {"error"}


def test_a_limited_token_sees_nothing_of_others(port: int) -> None:
    unknown = {"cluster": FOREIGN["cluster"], "group": "nobody"}
    found = asked(over_http(port, "limited"), *calls(OWN), *calls(FOREIGN), *calls(unknown))
    own, foreign, none = (found[i : i + len(TOOLS)] for i in range(0, len(found), len(TOOLS)))
    assert {group["group"] for group in told(own[0])["groups"]} <= {story.group for story in SEEN}
    assert sum(told(own[0])["groups_by_status"].values()) == len(SEEN)
    for answer in own:
        told(answer)
    for hidden, missing in zip(foreign[1:], none[1:], strict=True):
        assert refusal(hidden).replace(FOREIGN["group"], "nobody") == refusal(missing)
        assert "is known in cluster" in refusal(hidden)
    told_all = "".join(answer.content[0].text for answer in (*own, foreign[0]))
    for story in HIDDEN:
        assert json.dumps(story.group) not in told_all
    for answer in asked(over_http(port), *calls(FOREIGN)):
        told(answer)  # who sees everything sees it: it is there


def posted(
    port: int, tool: str, arguments: dict[str, Any], headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        connection.request("POST", "/mcp", json.dumps(call), sent)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_a_page_in_a_browser_cannot_ask_by_another_name_of_this_machine(port: int) -> None:
    token = {"Authorization": f"Bearer {TOKENS['all']}"}
    assert posted(port, "groups_in_trouble", {}, token)[0] == 200
    assert posted(port, "groups_in_trouble", {}, token | {"Host": "rebound.example"})[0] == 421
    assert posted(port, "groups_in_trouble", {}, token | {"Origin": "http://rebound.example"})[0] == 403


def test_its_health_can_be_asked_for(data: Path, port: int) -> None:
    result = CliRunner().invoke(cli, ["health", "mcp"], env={"LAGWISE_STATE_DIR": str(data / "state")})
    assert result.exit_code == 0, result.output
    assert f"mcp: answers http://127.0.0.1:{port}/mcp: " in result.output


@pytest.mark.parametrize("process", [name for name in health.COMMANDS if name != health.DASHBOARD])
def test_health_is_asked_for_by_the_name_of_the_process_or_of_its_command(tmp_path: Path, process: str) -> None:
    command, *options = health.COMMANDS[process]
    asked = [CliRunner().invoke(cli, ["health", name, "--data", str(tmp_path)]).output for name in (process, command)]
    assert asked[0] == asked[1]
    assert f"{process} (`lagwise {' '.join([command, *options])}`) has no heartbeat on this machine" in asked[0]
    health.Heart(tmp_path, process).beat("works")
    found = [CliRunner().invoke(cli, ["health", name, "--data", str(tmp_path)]) for name in (process, command)]
    assert [one.exit_code for one in found] == [0, 0]
    assert all(one.output.startswith(f"{process}: works") for one in found)


def test_a_probe_needs_no_token_and_is_told_nothing(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/healthz", headers={"Host": "10.0.0.7:8604"})  # as a kubelet asks
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"ok":true}')
    finally:
        connection.close()


def test_a_server_needs_a_port(data: Path) -> None:
    result = CliRunner().invoke(cli, ["mcp", "--http", "--data", str(data)])
    assert (result.exit_code, "add --port, or set `mcp.port`" in result.output) == (1, True)


def test_who_asks_too_often_is_told_to_wait(data: Path) -> None:
    with served(data, {"requests_per_second": 0.1, "burst_requests": 2}) as port:
        statuses = [posted(port, "groups_in_trouble", {}, {}) for _ in range(3)]
    assert [status for status, _, _ in statuses] == [200, 200, 429]
    assert 0 < int(statuses[2][1]["retry-after"]) <= 10


def test_without_tokens_only_loopback_answers(data: Path) -> None:
    # `server.host` is another server's.
    with served(data, {"host": "127.0.0.1"}, host="0.0.0.0") as port:
        assert posted(port, "groups_in_trouble", {}, {})[0] == 403
    with served(data, {"host": "0.0.0.0"}) as port:
        assert posted(port, "groups_in_trouble", {}, {})[0] == 200


def test_nothing_but_the_protocol_is_on_stdout_and_the_end_of_stdin_ends_it(data: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    wrong = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "partitions", "arguments": {}}}
    sent = "".join(f"{json.dumps(one)}\n" for one in (hello, wrong))
    command = [sys.executable, "-m", "lagwise_app", "mcp", "--data", str(data)]
    ran = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {answer["jsonrpc"] for answer in answers} == {"2.0"}
    assert answers[0]["result"]["serverInfo"]["name"] == "lagwise"


def test_options_that_contradict(data: Path) -> None:
    result = CliRunner().invoke(cli, ["mcp", "--port", "8604", "--data", str(data)])
    assert result.exit_code == 2
    assert "--host and --port go with --http" in result.output


def test_a_database_that_cannot_be_read_costs_only_the_alerts(data: Path, tmp_path: Path) -> None:
    (tmp_path / "lagwise.db").write_bytes(b"no database" * 1000)
    config = Config.model_validate({"data": str(data), "database": f"sqlite:///{tmp_path / 'lagwise.db'}"})
    context = Context(Lake(config.lake_uri), config, AlertAnswers(config))
    found = tools.group_story(context, Visibility(), OWN["cluster"], OWN["group"], 6)
    assert isinstance(found, models.GroupStory)
    assert found.alerts is None
    assert found.events


def test_the_words_are_those_of_the_docs() -> None:
    page = (DOCS / "statuses.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page.partition("| `unknown` because")[0], re.MULTILINE))
    assert {str(status): words for status, words in STATUSES.items()} == {
        status: re.sub(r" \(\d+ s\)$", "", words) for status, words in said.items()
    }


def test_the_docs_name_every_tool() -> None:
    page = (DOCS / "assistants.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(TOOLS)

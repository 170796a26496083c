"""The pages on the APIs: their examples are run by curl against a server, and their tables have every address."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from lagwise.config import Config
from lagwise.config.server import ServerSettings
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.store import Lake
from lagwise_app.server.access import Access, RateLimit
from lagwise_app.server.api.questions import QUESTIONS, Paging
from lagwise_app.server.burrow import burrow_routes
from lagwise_app.server.gate import Counts, Gate
from tests.app.test_serve import Served, serving
from tests.app.test_size_group import known
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO
from tests.docs.test_readme import blocks
from tests.lake_rows import append

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")
BURROW = PAGE.with_name("burrow-api.md")
EXAMPLES = [line for page in (PAGE, BURROW) for line in blocks(page) if line.startswith("curl ")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("documented")
    lake = write_to(folder, Scene(datetime.now(UTC), stories=GROUPS_OF_THE_DEMO, hours=0.1))
    append(lake, CAPACITY, [known("invoice-mailer", cluster="prod")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAGWISE_SERVER_TOKEN", "documented")
        metrics = {"stale_after_seconds": 3600}
        with serving(folder, "documented", token="${env:LAGWISE_SERVER_TOKEN}", metrics=metrics) as found:
            yield found


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_answered(served: Served, example: str) -> None:
    """Those without a token are for a server that requires none."""
    command = example.replace(":8603", f":{served.port}")
    if "Authorization" not in command:
        command = command.replace("curl ", 'curl -H "Authorization: Bearer $LAGWISE_SERVER_TOKEN" ')
    ran = subprocess.run(
        ["bash", "-c", command.replace("curl ", "curl --silent --show-error --fail ", 1)],
        env={"PATH": "/usr/bin:/bin", "LAGWISE_SERVER_TOKEN": "documented"},
        capture_output=True,
        check=True,
    )
    assert json.loads(ran.stdout)


def test_the_first_answers_are_those_that_are_shown(served: Served) -> None:
    pages = TEXT + BURROW.read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\$ curl '(\S+)'\n(\{.*)", pages, re.MULTILINE))
    assert len(shown) == 5
    for address, beginning in shown.items():
        found = served.get(address.partition(":8603")[2], Authorization="Bearer documented")[2].decode()
        for said in re.findall(r'"\w+":(?:"[^"…]*"|\d+)', beginning):
            assert said in found


def test_the_table_has_every_address_and_its_parameters() -> None:
    rows = re.findall(r"^\| `(/\S+)` \|[^|]+\|([^|]*)\|", TEXT, re.MULTILINE)
    (sizing,) = re.findall(r"^## Sizing\n.*?\|---\|---\|\n(.*?)\n\n", TEXT, re.MULTILINE | re.DOTALL)
    inputs = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", sizing)))
    found = {
        path: set(re.findall(r"`(\w+)`", cell)) | (inputs if "[inputs of sizing](#sizing)" in cell else set())
        for path, cell in rows
        if not path.endswith(("z", ".json"))
    }
    expected = {
        one.path.replace("{cluster}", "CLUSTER").replace("{group}", "GROUP"): set(one.query.model_fields)
        for one in QUESTIONS
    }
    assert found == expected
    assert f"is {Paging().limit} unless" in TEXT


def test_the_table_of_burrow_has_every_address_and_no_other() -> None:
    listed = re.findall(r"^\| `(/\S+)` \|", BURROW.read_text(encoding="utf-8"), re.MULTILINE)
    named = {"{cluster:name}": "CLUSTER", "{group:name}": "GROUP", "{topic:name}": "TOPIC"}
    gate = Gate(Access([]), RateLimit(1, 1), Counts(), 1)
    paths = [route.path for route in burrow_routes(gate, Lake("nowhere"), Config())]
    gate.close()
    for template, name in named.items():
        paths = [path.replace(template, name) for path in paths]
    assert sorted(listed) == sorted(paths)


def test_the_settings_are_valid() -> None:
    (example,) = re.findall(r"```yaml\n(server:.*?)```", TEXT, re.DOTALL)
    settings = ServerSettings.model_validate(yaml.safe_load(example)["server"])
    assert [token.role for token in settings.tokens] == ["metrics", "viewer"]

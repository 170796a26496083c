"""Every shell block of the README and the docs is run, or says what it needs that a test machine has not.

A comment before a block says which: ``<!-- run by tests/… -->`` names the test, ``<!-- needs … -->`` what it needs.
A block without a comment is run here, over a lake in which the group ``billing`` of the cluster ``prod`` has stopped.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lagwise.domain.vocabulary import Status
from lagwise.tables.capacity import CAPACITY
from lagwise_app.cli import cli
from tests.alerts.receiver import Receiver
from tests.app.judged import append
from tests.app.test_size_group import forecast, known
from tests.dashboard import alerts
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^(?P<indent> *)```(?:sh|bash|console|shell)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.M,
)
#: Programs that are run as they are. A block with others needs a mark: a page could do anything to this machine.
_PROGRAMS = {"cp"}
#: What a command that runs until Ctrl-C has in its line.
_UNTIL_CTRL_C = "--watch"


@dataclass(frozen=True)
class Block:
    """A shell block, with the comment that stands directly before it."""

    page: str
    text: str
    mark: str | None

    @property
    def commands(self) -> list[str]:
        """Its commands, without prompts and comments; lines without a prompt are what a command prints."""
        lines = self.text.replace("\\\n", "").splitlines()
        return [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines if line.startswith("$ ")]


BLOCKS = [
    Block(str(page.relative_to(ROOT)), found["text"], found["mark"])
    for page in PAGES
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))
]
RUN_HERE = [pytest.param(block, id=f"{block.page}: {block.commands[:1]}") for block in BLOCKS if block.mark is None]


def test_all_blocks_are_found() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(BLOCKS) == len(re.findall(r"^ *```(?:sh|bash|console|shell)\b", text, re.MULTILINE)) > 20
    assert len(RUN_HERE) > 8


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.mark is not None], ids=lambda block: block.page)
def test_a_mark_says_what_runs_the_block_or_what_it_needs(block: Block) -> None:
    assert block.mark is not None
    runs = re.fullmatch(r"run by (tests/\S+\.py)", block.mark)
    if runs is None:
        assert re.fullmatch(r"needs [^;]{8,}(?:; .*)?", block.mark), block.mark
    else:
        assert Path(block.page).name in (ROOT / runs[1]).read_text(encoding="utf-8"), (
            f"{runs[1]} does not read the page"
        )
    for named in re.findall(r"tests/\S+\.py", block.mark):
        assert (ROOT / named).is_file(), named


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with settings, a lake and a database, and the files of a checkout that the commands name."""
    folder = tmp_path_factory.mktemp("commands")
    data, now = folder / "data", datetime.now(UTC)
    stopped = next(story for story in GROUPS_OF_THE_DEMO if story.status == Status.STOPPED)
    stories = (*GROUPS_OF_THE_DEMO, replace(stopped, group="billing", topic="orders"))
    lake = write_to(data, Scene(now, stories=stories, hours=0.1))
    about: dict[str, Any] = {"cluster": stopped.cluster, "topic": "orders"}
    append(lake, CAPACITY, known("billing", **about, capacity_high_per_second=31_000.0, threads_per_node=40))
    forecast(data, lambda day: 18_000.0 + 100.0 * day, cluster=stopped.cluster)
    alerts.write_to(data, now, stories)
    with Receiver() as receiver:
        channels = [{"name": name, "url": receiver.url} for name in ("chat", "on-call", "pager", "team-chat")]
        clusters = [{"name": "prod", "bootstrap": "localhost:9"}]
        settings = {"data": str(data), "clusters": clusters, "alerts": {"channels": channels}}
        (folder / "lagwise.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        (folder / "alerts").symlink_to(ROOT / "alerts")
        shutil.copy(ROOT / "alerts" / "lagwise_alerts" / "rules" / "default_rules.yaml", folder / "rules.yaml")
        shutil.copytree(ROOT / "tests" / "traces" / "poison-pill", folder / "tests" / "traces" / "poison-pill")
        shutil.copytree(ROOT / "tests" / "traces" / "poison-pill", folder / "incident-42")
        yield folder


@pytest.mark.thorough
@pytest.mark.parametrize("block", RUN_HERE)
def test_the_commands_of_a_block_work(block: Block, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LAGWISE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(world)
    assert block.commands, "nothing begins with a prompt"
    for command in block.commands:
        _run(command, world)


def _run(command: str, world: Path) -> None:
    program, *words = shlex.split(command)
    if words and "*/" not in words[-1] and words[-1].endswith("/*"):  # as a shell would
        words[-1:] = [str(path) for path in world.glob(words[-1])]
    if program != "lagwise":
        assert program in _PROGRAMS, f"{command}: say before the block what it needs"
        subprocess.run([program, *words], check=True, timeout=30)
    elif _UNTIL_CTRL_C in words:
        _run_until_ctrl_c(words)
    else:
        ran = CliRunner().invoke(cli, words, prog_name="lagwise")
        assert ran.exit_code == 0, f"{command}\n{ran.output}"
        assert ran.stdout.strip(), f"{command} printed nothing"


def _run_until_ctrl_c(words: list[str]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "lagwise", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline(), process.stderr.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()

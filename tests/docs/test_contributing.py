"""The examples of CONTRIBUTING.md fit this version and work: each is applied to a copy, and what it adds is used."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.alerts.receiver import Receiver

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "contributing"
_ROOMS = ("lagwise", "collectors", "spark", "alerts", "dashboard", "sandbox", "app", ".streamlit", "pyproject.toml")
_ROOTS = (".", "app", "collectors", "spark", "alerts", "dashboard", "sandbox")

#: Runs Python in the changed copy, with the tests' helpers, and returns what it printed.
Run = Callable[..., str]


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[str], Run]:
    """A copy of the product with an example applied."""

    def apply(example: str) -> Run:
        copy = tmp_path / "copy"
        copy.mkdir()
        for room in _ROOMS:
            source, target = ROOT / room, copy / room
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        applied = ["git", "apply", str(EXAMPLES / f"{example}.diff")]
        done = subprocess.run(applied, cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, f"make the diff anew: {done.stderr}"

        def run(*arguments: str) -> str:
            roots = [str(copy / root) for root in _ROOTS] + [str(ROOT)]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "PYTHONDONTWRITEBYTECODE": "1"}
            environment = {name: value for name, value in environment.items() if "proxy" not in name.lower()}
            ran = subprocess.run(
                [sys.executable, "-P", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True,
                timeout=120,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr
            return ran.stdout

        # An installed checkout must not be what is imported.
        assert run("-c", "import lagwise; print(lagwise.__file__)").startswith(str(copy))
        return run

    return apply


def test_every_example_is_linked_and_tried() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = {path.name for path in EXAMPLES.glob("*.diff")}
    assert names == {"channel.diff", "source.diff", "page.diff", "rule.diff"}
    assert all(f"(docs/contributing/{name})" in text for name in names)


@pytest.mark.process
def test_a_channel(changed: Callable[[str], Run], tmp_path: Path) -> None:
    run = changed("channel")
    settings = tmp_path / "lagwise.yaml"
    channel = {"name": "chat", "type": "mattermost", "url": f"${{file:{tmp_path / 'address'}}}"}
    settings.write_text(yaml.safe_dump({"data": str(tmp_path), "alerts": {"channels": [channel]}}), encoding="utf-8")
    with Receiver() as receiver:
        (tmp_path / "address").write_text(receiver.url, encoding="utf-8")
        answer = json.loads(run("-m", "lagwise", "--config", str(settings), "alert", "test-channel", "chat", "--json"))
        assert answer["delivered"] is True
        [got] = receiver.got
        assert "test" in got.document["text"].lower()


@pytest.mark.process
def test_a_source(changed: Callable[[str], Run], tmp_path: Path) -> None:
    (tmp_path / "billing.properties").write_text("# written by the job\norders.0=12\norders.eu.1=7\n", encoding="utf-8")
    program = f"""
        from datetime import UTC, datetime
        from pydantic import TypeAdapter
        from lagwise.config.external_offsets import ExternalOffsetSource
        from lagwise_collectors.external_offsets.sources import reader_of

        given = {{"name": "files", "type": "properties", "path": {str(tmp_path / "*.properties")!r}}}
        found = reader_of(TypeAdapter(ExternalOffsetSource).validate_python(given), lambda: datetime.now(UTC))()
        for name, group in found.groups.items():
            print(name, sorted((one.topic, one.partition, one.committed) for one in group.offsets))
    """
    assert changed("source")("-c", textwrap.dedent(program)) == "billing [('orders', 0, 12), ('orders.eu', 1, 7)]\n"


@pytest.mark.process
def test_a_page(changed: Callable[[str], Run], tmp_path: Path) -> None:
    program = f"""
        from datetime import UTC, datetime
        from pathlib import Path
        from streamlit.testing.v1 import AppTest
        import lagwise_dashboard
        from lagwise.config import load_config
        from lagwise_dashboard import context
        from tests.dashboard import lakes
        from tests.dashboard.lakes import Scene
        from tests.dashboard.shown_tables import table

        lakes.write_to(Path({str(tmp_path)!r}), Scene(datetime.now(UTC)))
        context._in_use = load_config()
        app = AppTest.from_file(str(Path(lagwise_dashboard.__file__).parent / "server" / "app.py"), default_timeout=60)
        app.switch_page("../pages/clusters/clusters.py")
        app.run()
        assert not app.exception, app.exception
        shown = table(app, "clusters")
        print(dict(zip(shown["Cluster"], shown["In trouble"])), [t for t in shown.titles])
    """
    (tmp_path / "lagwise.yaml").write_text(yaml.safe_dump({"data": str(tmp_path)}), encoding="utf-8")
    shown = changed("page")("-c", textwrap.dedent(program))
    assert "'prod'" in shown
    assert "['Cluster', 'Groups', 'In trouble']" in shown


@pytest.mark.process
def test_a_rule(changed: Callable[[str], Run]) -> None:
    program = """
        from lagwise_alerts.rules.rule_file import load_rules
        print([rule.severity.value for rule in load_rules(None).rules if rule.name == "rebalance_storm"])
    """
    assert changed("rule")("-c", textwrap.dedent(program)) == "['warn']\n"

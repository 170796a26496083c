"""The page on metrics names every metric that is served and no other, and its example is what a server answers."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lagwise.config.server import MetricsSettings, NameSet
from lagwise_app.server.metrics.exposition import Metric
from lagwise_app.server.metrics.name_sets import EXPORTERS
from lagwise_app.server.metrics.own_metrics import OWN_METRICS
from tests.app.test_serve import serving
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO
from tests.docs.test_readme import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
TEXT = PAGE.read_text(encoding="utf-8")


def cells(section: str) -> list[list[str]]:
    """The cells of all rows that begin with something in code style."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]


def section(heading: str) -> str:
    (found,) = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", TEXT, re.DOTALL | re.MULTILINE)
    return str(found)


def test_every_metric_of_ours_is_listed_with_its_labels_and_no_other() -> None:
    def line(metric: Metric) -> list[str]:
        return [f"`{metric.name}`", ", ".join(f"`{label}`" for label in metric.labels), metric.help]

    assert cells(section("Metrics")) == [line(metric) for metric in OWN_METRICS]


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_every_metric_of_an_exporter_is_listed_and_no_other(exporter: NameSet) -> None:
    listed = section({"kafka_lag_exporter": "kafka-lag-exporter", "burrow": "Burrow"}.get(exporter, exporter))
    served, _, not_served = listed.partition("| not served | why |")
    assert cells(served) == [[f"`{metric.name}`", metric.help] for metric in EXPORTERS[exporter].metrics]
    names = {metric.name for metric in EXPORTERS[exporter].metrics}
    assert not names & {name for row in cells(not_served) for name in re.findall(r"`([^`]+)`", row[0])}


def test_every_exporter_s_address_is_that_of_the_server() -> None:
    listed = {row[1].strip("`") for row in (line.strip("|").split(" | ") for line in TEXT.splitlines()) if len(row) > 1}
    for name, exporter in EXPORTERS.items():
        assert f"/metrics/{name}" + ("" if exporter.names_cluster else "/CLUSTER") in {a.strip(" `") for a in listed}


def test_the_limits_have_their_settings_and_defaults() -> None:
    default = MetricsSettings()
    listed = {row[0].strip("`").removeprefix("server.metrics."): row[1] for row in cells(section("Limits"))}
    assert listed == {
        "groups": "all",
        "max_groups": f"{default.max_groups:,}",
        "max_partitions": f"{default.max_partitions:,}",
        "stale_after_seconds": f"{default.stale_after_seconds:g}",
    }


@pytest.mark.thorough
def test_the_example_is_what_is_answered(tmp_path: Path) -> None:
    command, *expected = blocks(PAGE)
    address = command.removeprefix("curl ")
    assert address.startswith("http://127.0.0.1:8603/")
    write_to(tmp_path, Scene(datetime.now(UTC), stories=GROUPS_OF_THE_DEMO, hours=0.1))
    with serving(tmp_path, metrics={"stale_after_seconds": 3600}) as served:
        answer = served.get(address.removeprefix("http://127.0.0.1:8603"))[2].decode().splitlines()
    assert expected
    for line in expected:
        assert line in answer

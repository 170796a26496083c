"""What the measurements share: options, processes of their own, the pipeline, CPU time, and how figures are printed."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from lagwise.config import AnyCluster, Config
from lagwise.operational.engine import open_engine
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.pipeline import Pipeline, pipeline_of
from lagwise_collectors.protocol import Source
from lagwise_collectors.run import leadership_of

#: Where modules of the measurements are started, so that Python finds them wherever the measurement itself was started.
REPOSITORY = Path(__file__).resolve().parents[1]


def options_parser(description: str | None, small: str, *, has_json: bool = False) -> argparse.ArgumentParser:
    """A parser of options that has ``--small``, which means what ``small`` says, and perhaps ``--json``.

    The ``description`` is the docstring of the measurement, of which the first line is shown.
    """
    module = sys.modules["__main__"].__spec__
    name = module.name.removesuffix(".__main__") if module is not None else sys.argv[0]
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=(description or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help=small)
    if has_json:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def print_figures(figures: Mapping[str, object], *, as_json: bool) -> None:
    """Print figures, one a line or as one JSON object."""
    if as_json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):30} {value}")


def in_child(module: str, *arguments: str) -> dict[str, Any]:
    """What a module prints as JSON, in a process of its own, so that neither way warms or burdens the other."""
    command = [sys.executable, "-m", module, *arguments]
    ran = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@contextlib.contextmanager
def opened_pipeline(source: Source, cluster: AnyCluster, config: Config, lake: Lake) -> Iterator[Pipeline]:
    """The product's pipeline from a source to a lake, with the right to write to it."""
    with contextlib.ExitStack() as opened:
        engine = open_engine(config.database_url)
        opened.callback(engine.dispose)
        leadership = opened.enter_context(leadership_of(cluster, lake, engine).taken())
        pipeline = pipeline_of(cluster.name, source, config, LakeWriter(lake), leadership)
        opened.callback(pipeline.close)
        yield pipeline


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time that a process has had."""
    used = process.cpu_times()
    return float(used.user + used.system)


def timed_runs(work: Callable[[], object], times: int) -> dict[str, dict[str, float]]:
    """Wall seconds and CPU seconds of this process for the work, done so many times."""
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {"wall_seconds": spread(walls), "cpu_seconds": spread(cpus)}


def spread(values: list[float]) -> dict[str, float]:
    """Least, median and most."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def spread_cell(figures: Mapping[str, float]) -> str:
    """A spread as a cell of a table."""
    return " / ".join(f"{figures[which]:.2f}" for which in ("min", "median", "max"))


def machine() -> dict[str, Any]:
    """The machine and its load before a measurement; ``load_after`` is to be added."""
    return {"cpus": os.cpu_count(), "load_before": os.getloadavg()[0]}


def machine_line(around: Mapping[str, Any]) -> str:
    """The machine and its loads as the first line of a table."""
    before, after = around["load_before"], around["load_after"]
    return f"machine: {around['cpus']} CPUs, load {before:.1f} before, {after:.1f} after"


def say(arguments: argparse.Namespace, line: str) -> None:
    """Progress, unless JSON is printed."""
    if not arguments.json:
        print(line, file=sys.stderr, flush=True)


def show(arguments: argparse.Namespace, line: str) -> None:
    """A line of the result as soon as it is known, unless JSON is printed."""
    if not arguments.json:
        print(line, flush=True)

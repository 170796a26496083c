"""Groups with a lag objective of their own: it decides when they are `lagging`, and nothing about anybody else."""

from dataclasses import replace
from pathlib import Path

import pytest

from lagwise.domain.vocabulary import Status
from lagwise.traces.csv_files import TraceError
from lagwise.traces.trace import Trace, read_trace
from tests.domain.judged_histories import VERDICT
from tests.traces.judged import Evaluation, judged

TRACES = Path(__file__).resolve().parents[1] / "traces"


@pytest.fixture(scope="module")
def trace() -> Trace:
    """One group is nine minutes behind all the time, one three; the objective is five."""
    return read_trace(TRACES / "steady-backlog")


def at_the_end(trace: Trace, own: dict[str, float]) -> Evaluation:
    last = trace.sample_at(trace.evaluation_times[-1])
    ((_, evaluation),) = judged(replace(trace, lag_objectives_s=own), [last])
    return evaluation


@pytest.mark.parametrize(
    ("own", "settlement", "quotes"),
    [
        ({}, Status.LAGGING, Status.OK),
        ({"settlement": 900.0}, Status.OK, Status.OK),
        ({"quotes": 60.0}, Status.LAGGING, Status.LAGGING),
        ({"settlement": 900.0, "quotes": 60.0}, Status.OK, Status.LAGGING),
        ({"another": 1.0}, Status.LAGGING, Status.OK),
    ],
)
def test_each_group_is_held_to_its_own(trace: Trace, own: dict[str, float], settlement: Status, quotes: Status) -> None:
    groups = at_the_end(trace, own).groups
    assert (groups["settlement"].status, groups["quotes"].status) == (settlement, quotes)


def test_all_else_is_the_same(trace: Trace) -> None:
    common, own = at_the_end(trace, {}), at_the_end(trace, {"settlement": 900.0})
    evidence = [name for name in vars(next(iter(common.partitions.values()))) if name not in (*VERDICT, "holds")]
    for pair, one in common.partitions.items():
        its = own.partitions[pair]
        if pair.group == "quotes":
            assert its == one
        assert [name for name in evidence if getattr(its, name) != getattr(one, name)] in (
            [],
            ["lag_objective_seconds"],
        )


class TestInATrace:
    HEAD = "sample_interval_s = 15\n"

    def _folder(self, tmp_path: Path, head: str) -> Path:
        (tmp_path / "trace.toml").write_text(self.HEAD + head, encoding="utf-8")
        (tmp_path / "watermarks.csv").write_text(
            "time_s,topic,partition,log_start,high_watermark,last_stable,topic_id\n0,t,0,0,5,,\n", encoding="utf-8"
        )
        (tmp_path / "commits.csv").write_text("time_s,group,topic,partition,committed\n0,g,t,0,1\n", encoding="utf-8")
        return tmp_path

    def test_they_are_read(self, tmp_path: Path) -> None:
        trace = read_trace(self._folder(tmp_path, '[lag_objectives_s]\ng = 60\n"with space" = 7.5\n'))
        assert trace.lag_objectives_s == {"g": 60.0, "with space": 7.5}

    @pytest.mark.parametrize(
        "head", ["lag_objectives_s = 5", "[lag_objectives_s]\ng = 0", "[lag_objectives_s]\ng = true"]
    )
    def test_what_is_none_is_refused(self, tmp_path: Path, head: str) -> None:
        with pytest.raises(TraceError, match="lag_objectives_s must be groups"):
            read_trace(self._folder(tmp_path, head))

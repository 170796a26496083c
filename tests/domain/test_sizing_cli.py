"""`lagwise size`: what it accepts, what it prints, and that every refusal names its option."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lagwise_app.cli.size import OPTIONS, size

USUAL = {"--t1": "12ms", "--t2": "3ms", "--cores": "8", "--peak": "20000", "--partitions": "480"}


def run(*flags: str, **changed: str) -> Result:
    options = USUAL | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return CliRunner().invoke(size, [word for pair in options.items() for word in pair] + list(flags))


def document(**changed: str) -> dict[str, Any]:
    result = run("--json", **changed)
    assert result.exit_code == 0, result.output
    made: dict[str, Any] = json.loads(result.output)
    return made


def test_json_is_stable() -> None:
    made = document()
    assert list(made) == [
        "feasible",
        "triple",
        "binds",
        "verdict",
        "changes",
        "inputs",
        "figures",
        "node",
        "downstream_full",
    ]
    assert made["feasible"] is True
    assert made["triple"] == {
        "partitions": 480,
        "nodes": 13,
        "spare_nodes": 1,
        "threads_per_node": 40,
        "idle_threads": 40,
        "capacity_per_second": pytest.approx(29_579.6, abs=0.1),
    }
    assert made["binds"] == "cpu"
    assert set(made["inputs"]) == set(OPTIONS) - {"seconds_per_message"}
    assert [point["threads"] for point in made["node"]] == [1, 40, 43]
    assert set(made["node"][0]) == {
        "threads",
        "label",
        "straight_line_rate_per_second",
        "rate_per_second",
        "core_utilisation",
        "core_wait_seconds",
    }
    assert all(set(figure) == {"value", "unit", "how"} for figure in made["figures"].values())
    assert made["figures"]["knee_threads_per_node"]["value"] == pytest.approx(40.0)


def test_every_input_has_its_source() -> None:
    inputs = document(restart="60s")["inputs"]
    assert inputs["t1_seconds"] == {"value": 0.012, "source": "option --t1"}
    assert inputs["restart_seconds"] == {"value": 60.0, "source": "option --restart"}
    assert inputs["catch_up_seconds"] == {"value": 1800.0, "source": "default"}
    assert inputs["hottest_share"] == {"value": None, "source": "default"}
    assert inputs["concurrency"] == {"value": "consumer-per-thread", "source": "default"}


def test_an_outage_asks_for_more() -> None:
    figures = document(partitions="960", outage="1h")["figures"]
    assert figures["demand_rate_per_second"] == {
        "value": pytest.approx(25_000.0),
        "unit": "messages/s",
        "how": "peak · (1 + outage / its catch-up) = 20,000 · (1 + 1 h / 4 h)",
    }
    # The same hour over 40 hours asks for less than a restart does.
    assert document(outage="1h", outage_catch_up="40h")["figures"] == document()["figures"]


def test_no_answer_is_an_answer() -> None:
    made = document(partitions="48")
    assert made["feasible"] is False
    assert made["triple"] is None
    assert made["binds"] == "partitions"
    assert [change["kind"] for change in made["changes"]] == ["pool", "partitions", "faster"]
    assert all(change["triple"]["nodes"] == 13 for change in made["changes"][:2])
    assert [change["cost"] is None for change in made["changes"]] == [True, False, True]
    assert "432 open files and 864 memory maps" in made["changes"][1]["cost"]
    report = run(partitions="48")
    assert report.exit_code == 0
    assert "No answer on 48 partitions · limited by: partitions" in report.output
    assert "Cheapest change: " in report.output


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("12ms", 0.012), ("3us", 3e-6), ("3µs", 3e-6), ("3μs", 3e-6), ("800ns", 8e-7), ("1.5s", 1.5), ("0", 0.0),
     ("2m", 120.0), ("2min", 120.0), (" .5 H ", 1800.0), ("1d", 86_400.0), ("1h30m", 5_400.0)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert document(t1=text)["inputs"]["t1_seconds"]["value"] == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "share"), [("0.1", 0.1), ("10%", 0.1), ("10 %", 0.1), ("1", 1.0)])
def test_shares(text: str, share: float) -> None:
    assert document(hottest_share=text)["inputs"]["hottest_share"]["value"] == pytest.approx(share)


@pytest.mark.parametrize(("text", "rate"), [("20k", 2e4), ("1.5M", 1.5e6), ("20_000", 2e4), ("0", 0.0), ("1e3", 1e3)])
def test_amounts(text: str, rate: float) -> None:
    assert document(peak=text)["inputs"]["peak_rate_per_second"]["value"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("changed", "named", "allowed"),
    [
        ({"t1": "12"}, "--t1", "write a number and a unit (ns, us, ms, s, m, h, d), as in 12ms, 30s or 1h30m"),
        ({"t1": "-5ms"}, "--t1", "is negative: write a number and a unit"),
        ({"t1": "5 parsecs"}, "--t1", "is not a duration"),
        ({"t1": "2d"}, "--t1", "must be 0, or from 1 ns to 1 day."),
        ({"t2": "0.1ns"}, "--t2", "must be 0, or from 1 ns to 1 day."),
        ({"t1": "0", "t2": "0"}, "--t2", "must be above 0 where --t1 is 0"),
        ({"cores": "0"}, "--cores", "must be a number from 0.01 to 4,096."),
        ({"cores": "nan"}, "--cores", "must be a number from 0.01 to 4,096."),
        ({"peak": "-1"}, "--peak", "must be a number from 0 to 1e12."),
        ({"peak": "inf"}, "--peak", "must be a number from 0 to 1e12."),
        ({"peak": "many"}, "--peak", "write 20000, 20k or 1.5M"),
        ({"partitions": "0"}, "--partitions", "must be a whole number from 1 to 100,000."),
        ({"partitions": "4.5"}, "--partitions", "4.5"),
        ({"hottest_share": "0.001"}, "--hottest-share", "must be from 0.002083 (0.208%), the even share of 480"),
        ({"hottest_share": "101%"}, "--hottest-share", "to 1 (100%)."),
        ({"hottest_share": "half"}, "--hottest-share", "write a number such as 0.1 or 10%"),
        ({"utilisation": "70"}, "--utilisation", "must be a number from 0.01 to 1."),
        ({"catch_up": "0"}, "--catch-up", "must be from 1 second to 30 days."),
        ({"restart": "2d"}, "--restart", "must be from 0 to 1 day."),
        ({"outage": "31d"}, "--outage", "must be from 0 to 30 days."),
        ({"outage_catch_up": "0"}, "--outage-catch-up", "must be from 1 second to 30 days."),
        ({"objective_rate": "-1"}, "--objective-rate", "must be a number from 0 to 1e12."),
        ({"objective_rate": "20001"}, "--objective-rate", "must be --peak at most"),
        ({"by": "objective"}, "--by objective", "needs a GROUP with recorded minutes"),
        ({"by": "magic"}, "--by", "objective"),
        ({"objective": "5m"}, "--objective", "needs a GROUP, whose minutes are recorded"),
        ({"lag": "-1"}, "--lag", "must be a number from 0 to 1e15."),
        ({"spare_nodes": "-1"}, "--spare-nodes", "must be a whole number from 0 to 100."),
        ({"ceiling_share": "1"}, "--ceiling-share", "must be a number from 0.01 to 0.999."),
        ({"max_threads": "0"}, "--max-threads", "must be a whole number from 1 to 10,000."),
        ({"concurrency": "magic"}, "--concurrency", "consumer-per-thread"),
        ({"ordering": "magic"}, "--ordering", "global"),
    ],
)
def test_a_refusal_names_its_option_and_what_is_allowed(changed: dict[str, str], named: str, allowed: str) -> None:
    result = run(**changed)
    assert result.exit_code == 2
    error = result.output[result.output.index("Error: ") :]
    assert named in error
    assert allowed in error


def test_help_teaches_with_examples_that_work() -> None:
    shown = CliRunner().invoke(size, ["--help"]).output
    examples = [line.split()[2:] for line in shown.splitlines() if line.strip().startswith("lagwise size --t1")]
    assert len(examples) == 2
    for example in examples:
        result = CliRunner().invoke(size, example)
        assert result.exit_code == 0, result.output
        assert "No answer" not in result.output
    assert all(option in shown for option in OPTIONS.values())
    assert "The probe measures both" in " ".join(shown.split())
    # The examples are a paragraph of their own, and what follows is filled like the rest.
    [after] = [i for i, line in enumerate(shown.splitlines()) if line.strip().startswith("T1 is the time")]
    assert shown.splitlines()[after - 1] == ""
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.strip().startswith("lagwise size"))


def test_the_objective_decides_and_the_peak_stays_beside_it() -> None:
    by_peak, made = document(), document(objective_rate="5k")
    assert made["triple"]["nodes"] == 4 < by_peak["triple"]["nodes"]
    assert made["figures"]["required_rate_per_second"]["value"] == pytest.approx(5_000 * (1 + 1 / 30) / 0.7)
    both = {name: made["figures"][name] for name in ("objective_rate_per_second", "peak_rate_per_second")}
    assert {name: (one["value"], one["how"]) for name, one in both.items()} == {
        "objective_rate_per_second": (5_000.0, "planned with"),
        "peak_rate_per_second": (20_000.0, "for comparison"),
    }
    assert made["verdict"].endswith(
        "Sized by the objective: the objective takes 5,000 messages/s, the highest minute 20,000."
    )
    chosen = document(objective_rate="5k", by="peak")
    assert chosen["triple"] == by_peak["triple"]
    assert chosen["verdict"].endswith(
        "Sized by the highest minute: the objective takes 5,000 messages/s, the highest minute 20,000."
    )


def test_where_only_the_peak_is_known_it_says_so() -> None:
    figures = document()["figures"]
    assert "objective_rate_per_second" not in figures
    assert figures["peak_rate_per_second"]["how"] == ("planned with: what a lag objective takes is unknown")
    assert document(by="peak")["figures"]["peak_rate_per_second"]["how"] == "planned with"

"""What the Makefile and CI stand on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.process
def test_a_skipped_test_fails_ci_and_an_expected_failure_does_not(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        """
import pytest
def test_good(): pass
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.skip(reason="no Chromium")
def test_left_out(): pass
""",
        encoding="utf-8",
    )

    def verdict(*selection: str) -> tuple[int, str]:
        report = tmp_path / "report.xml"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *selection],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        ran = subprocess.run(
            [sys.executable, str(ROOT / ".ci" / "skipped.py"), str(report)], capture_output=True, text=True, check=False
        )
        return ran.returncode, ran.stdout

    code, said = verdict()
    assert code == 1
    assert "skipped in CI: test_x::test_left_out: no Chromium" in said
    assert verdict("--deselect", "test_x.py::test_left_out") == (0, "2 tests, 0 skipped\n")
    assert verdict("-k", "nothing_at_all")[0] == 1


@pytest.mark.parametrize("script", ["scripts/setup.sh", ".ci/run"])
def test_the_scripts_are_executable_and_parse(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / script)], check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a checkout as the set-up looks at, in a place of its own."""
    for name in ("pyproject.toml", "scripts/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def setup(checkout: Path, *parts: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": str(checkout)}
    return subprocess.run(
        [str(checkout / "scripts" / "setup.sh"), *parts], capture_output=True, text=True, env=environment, check=False
    )


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with the tools of every machine, and neither Python nor Java nor apt."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "env", "dirname", "sed", "head", "tail", "cat", "id", "mkdir", "sha256sum", "printf"):
        found = shutil.which(tool)
        if found:
            (tools / tool).symlink_to(found)
    return str(tools)


def test_without_python_it_says_what_to_install(checkout: Path, bare_path: str) -> None:
    ran = setup(checkout, "python", path=bare_path)
    assert ran.returncode == 1
    assert ran.stderr == "setup: there is no Python 3.11 or newer: install python3.11 (or set PYTHON to one)\n"


def test_without_java_and_apt_it_says_what_to_install(checkout: Path, bare_path: str) -> None:
    ran = setup(checkout, "java", path=bare_path)
    assert ran.returncode == 1
    assert "install openjdk-17-jre-headless" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "enough"), [("11.0.2", False), ("1.8.0_292", False), ("17.0.1", True), ("21", True)]
)
def test_java_s_version_is_looked_at(checkout: Path, bare_path: str, version: str, enough: bool) -> None:
    java = Path(bare_path) / "java"
    java.write_text(f"#!{bare_path}/bash\nprintf 'openjdk version \"{version}\" 2021\\n' >&2\n")
    java.chmod(0o755)
    assert (setup(checkout, "java", path=bare_path).returncode == 0) is enough


def test_a_missing_browser_is_no_failure(checkout: Path, bare_path: str) -> None:
    ran = setup(checkout, "browser", path=bare_path)
    assert ran.returncode == 0
    assert "the browser tests will be skipped" in ran.stderr


def test_a_second_run_is_done_in_a_moment(checkout: Path, bare_path: str) -> None:
    """With the stamp in place nothing is installed: there is not even a pip here that could."""
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    version = "import sys; print(sys.version)"
    fingerprint = f"{{ cat pyproject.toml scripts/setup.sh; pwd; .venv/bin/python -c '{version}'; }} | sha256sum"
    stamp = subprocess.run(["bash", "-c", fingerprint], cwd=checkout, capture_output=True, text=True, check=True).stdout
    (checkout / ".venv" / ".lagwise-setup").write_text(stamp)
    assert setup(checkout, "python", path=bare_path).returncode == 0
    (checkout / "pyproject.toml").write_text("changed")
    assert setup(checkout, "python", path=bare_path).returncode == 1


def test_an_unknown_part_is_refused(checkout: Path, bare_path: str) -> None:
    ran = setup(checkout, "nonsense", path=bare_path)
    assert ran.returncode == 1
    assert "there are: python, java, browser" in ran.stderr


@pytest.mark.process
def test_a_run_of_the_tests_prints_nothing_that_needs_no_action() -> None:
    """A property and DuckDB in one process, and tests of the pages collected: both used to leave lines behind."""
    kept = {ROOT / "tests/domain/test_time_lag.py", ROOT / "tests/dashboard/test_words.py"}
    # Files are not named: what is named is loaded before pytest shows what is printed.
    others = [f"--ignore={file}" for file in sorted((ROOT / "tests").glob("*/test_*.py")) if file not in kept]
    chosen = ["tests", *others, "-k", "right_to_within_a_sampling_interval"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    assert ran.stderr == ""
    assert re.fullmatch(r"=+ [1-9]\d* passed, \d+ deselected in .* =+", lines[-1]), lines[-5:]
    assert not any("No runtime found" in line or "Fugue" in line for line in lines), ran.stdout

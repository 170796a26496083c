"""What is installed into somebody's environment: our seven packages, whole, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "lagwise": ROOT,
    "lagwise_collectors": ROOT / "collectors",
    "lagwise_spark": ROOT / "spark",
    "lagwise_alerts": ROOT / "alerts",
    "lagwise_dashboard": ROOT / "dashboard",
    "lagwise_sandbox": ROOT / "sandbox",
    "lagwise_app": ROOT / "app",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_no_import_name_but_ours(wheel: set[str]) -> None:
    assert {name.partition("/")[0] for name in wheel if ".dist-info/" not in name} == set(PACKAGES)


def test_every_file_of_every_package(wheel: set[str]) -> None:
    for package, root in PACKAGES.items():
        ours = {
            path.relative_to(root).as_posix()
            for path in (root / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert ours <= wheel
        assert f"{package}/py.typed" in wheel


def test_the_dashboard_s_settings_are_in_it(wheel: set[str]) -> None:
    assert "lagwise_dashboard/streamlit_config.toml" in wheel


def test_the_command_is_in_it(wheel: set[str]) -> None:
    assert any(name.endswith(".dist-info/entry_points.txt") for name in wheel)

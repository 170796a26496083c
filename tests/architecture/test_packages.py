"""What is installed into somebody's environment: our seven packages, whole, and nothing else."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

from lagwise import __version__

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


def built(source: Path, target: str, folder: Path) -> Path:
    """The archive of this kind (`wheel` or `sdist`), built from a folder of sources."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (archive,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return archive


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files in the wheel, by name."""
    return files_of(built(ROOT, "wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built(ROOT, "sdist", folder)) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"lagwise-{__version__}"


def test_no_import_name_but_ours(wheel: dict[str, bytes]) -> None:
    assert {name.partition("/")[0] for name in wheel if ".dist-info/" not in name} == set(PACKAGES)


def test_every_file_of_every_package(wheel: dict[str, bytes]) -> None:
    for package, root in PACKAGES.items():
        ours = {
            path.relative_to(root).as_posix()
            for path in (root / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert ours <= set(wheel)
        assert f"{package}/py.typed" in wheel


def test_the_dashboard_s_settings_are_in_it(wheel: dict[str, bytes]) -> None:
    assert "lagwise_dashboard/streamlit_config.toml" in wheel


def test_the_command_is_in_it(wheel: dict[str, bytes]) -> None:
    assert wheel[f"lagwise-{__version__}.dist-info/entry_points.txt"] == (
        b"[console_scripts]\nlagwise = lagwise_app.cli:main\n"
    )


def test_the_version_stands_in_one_place(wheel: dict[str, bytes]) -> None:
    metadata = BytesParser().parsebytes(wheel[f"lagwise-{__version__}.dist-info/METADATA"])
    assert metadata["Version"] == __version__
    assert "version" not in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = subprocess.run(
        [sys.executable, "-m", "lagwise", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"lagwise {__version__}\n"


def test_the_source_archive_makes_the_same_wheel(wheel: dict[str, bytes], unpacked: Path, tmp_path: Path) -> None:
    """Somebody who has only the archive needs no file of the checkout."""
    assert files_of(built(unpacked, "wheel", tmp_path)) == wheel


def test_the_source_archive_has_what_is_installed_by_hand_and_no_tests(unpacked: Path) -> None:
    assert (unpacked / "deploy" / "prometheus" / "lagwise.rules.yaml").is_file()
    assert (unpacked / "docs" / "README.md").is_file()
    assert not {"tests", "benchmarks", ".ci"} & {path.name for path in unpacked.iterdir()}

"""How the dashboard is started, and that it looks the same from a checkout and from a wheel."""

import importlib
import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import streamlit.config

from lagwise.config import Config, Dashboard
from lagwise.errors import ConfigError
from lagwise_dashboard import launch, serve

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Config(dashboard=Dashboard(host="127.0.0.1", port=9123))


def test_the_command_serves_the_installed_app_where_it_was_told_to() -> None:
    words = launch.command(CONFIG)
    assert words[:4] == [sys.executable, "-m", "lagwise_dashboard.serve", "run"]
    assert Path(words[4]).name == "app.py"
    assert Path(words[4]).is_file()
    assert {"--server.address=127.0.0.1", "--server.port=9123", "--browser.gatherUsageStats=false"} <= set(words)


def test_what_is_loaded_beforehand_is_there() -> None:
    for module in serve._MODULES:
        importlib.import_module(module)


def test_streamlit_knows_every_variable() -> None:
    known = {option.env_var for option in streamlit.config._config_options_template.values()}
    given = launch.environment(CONFIG)
    assert set(given) <= known
    assert given["STREAMLIT_CLIENT_SHOW_ERROR_DETAILS"] == "none"
    assert given["STREAMLIT_BROWSER_GATHER_USAGE_STATS"] == "false"
    assert json.loads(given["STREAMLIT_THEME_HEADING_FONT_SIZES"])[0].endswith("px")


def test_every_setting_of_the_file_is_passed_on() -> None:
    tree = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))

    def leaves(node: dict[str, object]) -> int:
        return sum(leaves(v) if isinstance(v, dict) else 1 for v in node.values())

    assert len(launch.environment(CONFIG)) == leaves(tree)


def test_no_setting_fetches_anything_from_elsewhere() -> None:
    """Fonts, icons and scripts are served by the dashboard itself: sites without internet see the same."""
    for file in (ROOT / ".streamlit" / "config.toml", *(ROOT / "dashboard").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert "fonts.g" not in text, file
        assert "https://" not in text.replace("https://www.w3.org", ""), file


def test_a_damaged_settings_file_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[theme\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot read the dashboard's settings file"):
        launch.streamlit_variables(file)


def test_nothing_is_drawn_by_markup_of_our_own() -> None:
    for file in (ROOT / "dashboard").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for forbidden in ("unsafe_allow_html", "st.html(", "components.v1", ".style.", "use_container_width"):
            assert forbidden not in text, f"{file}: {forbidden}"


@pytest.mark.long
def test_the_wheel_carries_app_views_assets_and_settings(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)],
        check=True,
        timeout=250,
    )
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        packed.extractall(tmp_path / "unpacked")
    assert {
        f"lagwise_dashboard/{n}" for n in ("app.py", "views/group.py", "assets/lagwise.svg", "streamlit_config.toml")
    } <= names
    code = "from lagwise_dashboard import launch; f = launch.settings_file(); launch.streamlit_variables(f); print(f)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert Path(found.stdout.strip()) == tmp_path / "unpacked" / "lagwise_dashboard" / "streamlit_config.toml"

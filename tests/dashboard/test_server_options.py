"""Which options Streamlit is given, and that the dashboard looks the same from a checkout and from a wheel."""

import importlib
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import streamlit.config
import streamlit.logger

from lagwise.config import Config
from lagwise.platform.errors import ConfigError
from lagwise_dashboard.server import serve, streamlit_options

ROOT = Path(__file__).resolve().parents[2]
#: A sign-in whose file lies in the working directory.
SIGN_IN = {"auth_file": "auth.toml"}


def config(**dashboard: object) -> Config:
    return Config.model_validate({"dashboard": dashboard})


def test_streamlit_logs_through_the_handlers_that_redact(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(streamlit.logger, "_loggers", {})
    monkeypatch.setattr(streamlit.logger, "setup_formatter", streamlit.logger.setup_formatter)
    before = streamlit.logger.get_logger("streamlit.tested.before")
    serve._redact_streamlit_log()
    later = streamlit.logger.get_logger("streamlit.tested.later")
    for logger in (before, later):
        assert logger.handlers == []
        logger.error("in %s", logger.name)
    assert caplog.messages == ["in streamlit.tested.before", "in streamlit.tested.later"]


def test_what_is_loaded_beforehand_is_there() -> None:
    for module in serve._MODULES:
        importlib.import_module(module)


def test_streamlit_knows_every_option() -> None:
    known = set(streamlit.config._config_options_template)
    given = streamlit_options.options(config(sign_in=SIGN_IN))
    assert set(given) <= known
    assert given["client.showErrorDetails"] == "none"
    assert given["browser.gatherUsageStats"] is False
    assert given["theme.headingFontSizes"][0].endswith("px")


def test_every_option_of_the_file_is_passed_on() -> None:
    tree = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))

    def leaves(node: dict[str, object]) -> int:
        return sum(leaves(v) if isinstance(v, dict) else 1 for v in node.values())

    assert len(streamlit_options.from_file(streamlit_options.installed_file())) == leaves(tree)
    assert set(streamlit_options.from_file(streamlit_options.installed_file())) <= set(
        streamlit_options.options(config())
    )


def test_address_port_and_sign_in_are_those_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = streamlit_options.options(config(host="127.0.0.2", port=9123, sign_in=SIGN_IN))
    assert (given["server.address"], given["server.port"]) == ("127.0.0.2", 9123)
    assert given["secrets.files"] == [str(tmp_path / "auth.toml")]


def test_no_file_or_variable_of_streamlit_s_own_opens_what_the_sign_in_closes() -> None:
    given = streamlit_options.options(config())
    assert given["secrets.files"] == []
    assert given["server.enableXsrfProtection"] is True
    assert given["server.enableCORS"] is True
    assert given["server.trustedUserHeaders"] == {}
    assert given["server.enableAgentApi"] is False


def test_no_setting_fetches_anything_from_the_internet() -> None:
    """Fonts, icons and scripts are served by the dashboard itself: sites without internet see the same."""
    for file in (ROOT / ".streamlit" / "config.toml", *(ROOT / "dashboard").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert "fonts.g" not in text, file
        assert "https://" not in text.replace("https://www.w3.org", ""), file


def test_a_damaged_settings_file_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[theme\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot read the dashboard's settings file"):
        streamlit_options.from_file(file)


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
        f"lagwise_dashboard/{n}"
        for n in ("server/app.py", "pages/group/group.py", "assets/lagwise.svg", "streamlit_config.toml")
    } <= names
    code = (
        "from lagwise_dashboard.server import streamlit_options as o; f = o.installed_file(); o.from_file(f); print(f)"
    )
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

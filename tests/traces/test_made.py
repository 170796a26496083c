"""The traces of this folder are what their stories make, to the byte, and hold all that they are to prove."""

from pathlib import Path

import pytest

from tests.traces.make import STORIES

HERE = Path(__file__).parent


def test_every_story_has_its_folder_and_no_other() -> None:
    assert sorted(STORIES) == sorted(path.parent.name for path in HERE.glob("*/trace.toml"))


@pytest.mark.parametrize("name", sorted(STORIES))
def test_a_trace_is_what_its_story_makes(name: str, tmp_path: Path) -> None:
    made = STORIES[name]().write(tmp_path)
    files = {path.name: path.read_bytes() for path in made.iterdir()}
    assert files == {path.name: path.read_bytes() for path in (HERE / name).iterdir()}

"""The pictures of README and docs are those that ``make pictures`` takes."""

from tests.dashboard.pictures import FOLDER, PICTURES
from tests.docs.test_links import PAGES, links


def test_every_picture_that_is_shown_is_taken_by_the_command_and_no_other_is_kept() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page) if link.endswith(".png")}
    assert shown == {FOLDER / picture.file for picture in PICTURES} == set(FOLDER.glob("*.png"))

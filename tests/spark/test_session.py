"""How a session comes by Delta's jars."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from lagwise_spark.session import DELTA_PACKAGE, _jars


def test_one_fetches_the_jars_and_whoever_comes_meanwhile_uses_them(tmp_path: Path) -> None:
    begun = Event()

    def another() -> dict[str, str]:
        begun.set()
        with _jars(tmp_path) as found:
            return found

    with ThreadPoolExecutor(1) as pool:
        with _jars(tmp_path) as found:
            assert found == {"spark.jars.packages": DELTA_PACKAGE}
            second = pool.submit(another)
            assert begun.wait(10)
            jar = tmp_path / "jars" / "delta.jar"
            jar.parent.mkdir()
            jar.touch()
        assert second.result(10) == {"spark.jars": str(jar)}
    with _jars(tmp_path) as found:
        assert found == {"spark.jars": str(jar)}


def test_what_could_not_be_fetched_is_not_remembered(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), _jars(tmp_path):
        raise ConnectionError
    with _jars(tmp_path) as found:
        assert found == {"spark.jars.packages": DELTA_PACKAGE}

"""How a session comes by Delta's jars."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from lagwise_spark.object_store import conf_for, packages_for
from lagwise_spark.session import DELTA_PACKAGE, _jars


def test_one_fetches_the_jars_and_whoever_comes_meanwhile_uses_them(tmp_path: Path) -> None:
    begun = Event()

    def another() -> dict[str, str]:
        begun.set()
        with _jars(tmp_path, [DELTA_PACKAGE]) as found:
            return found

    with ThreadPoolExecutor(1) as pool:
        with _jars(tmp_path, [DELTA_PACKAGE]) as found:
            assert found == {"spark.jars.packages": DELTA_PACKAGE}
            second = pool.submit(another)
            assert begun.wait(10)
            jar = tmp_path / "jars" / "delta.jar"
            jar.parent.mkdir()
            jar.touch()
        assert second.result(10) == {"spark.jars": str(jar), "spark.jars.packages": ""}
    with _jars(tmp_path, [DELTA_PACKAGE]) as found:
        assert found == {"spark.jars": str(jar), "spark.jars.packages": ""}


def test_what_could_not_be_fetched_is_not_remembered(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), _jars(tmp_path, [DELTA_PACKAGE]):
        raise ConnectionError
    with _jars(tmp_path, [DELTA_PACKAGE]) as found:
        assert found == {"spark.jars.packages": DELTA_PACKAGE}


def test_a_store_of_the_s3_kind_is_told_to_spark_as_it_is_to_delta_rs() -> None:
    told = {
        "AWS_ACCESS_KEY_ID": "me",
        "secret_access_key": "mine",
        "aws_region": "eu-1",
        "AWS_ENDPOINT_URL": "http://s",
    }
    its = "fs.s3a."
    assert conf_for("s3://lake/lagwise/lake", told).items() >= {
        (its + "access.key", "me"), (its + "secret.key", "mine"), (its + "endpoint.region", "eu-1"),
        (its + "endpoint", "http://s"), (its + "path.style.access", "true"),
    }  # fmt: skip
    hosted = conf_for("s3a://lake", told | {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true", "AWS_SESSION_TOKEN": "t"})
    assert hosted[its + "path.style.access"] == "false"
    assert hosted[its + "aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert conf_for("s3://lake", {}).keys() == {"fs.s3.impl"}, "the machine's role is S3A's to find"
    for elsewhere in ("/var/lib/lagwise/lake", "abfss://lake@account/lagwise/lake", "gs://lake"):
        assert (packages_for(elsewhere), conf_for(elsewhere, told)) == ((), {})

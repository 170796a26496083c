"""How a session comes by Delta's jars and by its settings, which may hold secrets."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import psutil
import pytest

from lagwise_spark.jvm import properties_file
from lagwise_spark.object_store import conf_for, packages_for
from lagwise_spark.session import DELTA_PACKAGE, _jars
from tests.fixtures.spark import SECRET_OF_JAVA, SECRETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_an_s3_store_is_configured_alike_for_spark_and_delta_rs() -> None:
    env = {
        "AWS_ACCESS_KEY_ID": "me",
        "secret_access_key": "mine",
        "aws_region": "eu-1",
        "AWS_ENDPOINT_URL": "http://s",
    }
    its = "fs.s3a."
    assert conf_for("s3://lake/lagwise/lake", env).items() >= {
        (its + "access.key", "me"), (its + "secret.key", "mine"), (its + "endpoint.region", "eu-1"),
        (its + "endpoint", "http://s"), (its + "path.style.access", "true"),
    }  # fmt: skip
    hosted = conf_for("s3a://lake", env | {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true", "AWS_SESSION_TOKEN": "t"})
    assert hosted[its + "path.style.access"] == "false"
    assert hosted[its + "aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert conf_for("s3://lake", {}).keys() == {"fs.s3.impl"}, "the machine's role is S3A's to find"
    for elsewhere in ("/var/lib/lagwise/lake", "abfss://lake@account/lagwise/lake", "gs://lake"):
        assert (packages_for(elsewhere), conf_for(elsewhere, env)) == ((), {})


@pytest.mark.spark
def test_settings_reach_the_jvm_and_no_command_line(spark: "SparkSession") -> None:
    context = spark.sparkContext
    hadoop, java = context._jsc.hadoopConfiguration(), context._jvm.java.lang.System
    got = {key: hadoop.get(key.removeprefix("spark.hadoop.")) for key in SECRETS}
    assert got == SECRETS
    assert java.getProperty("lagwise.test.password") == SECRET_OF_JAVA

    jvm = psutil.Process(context._gateway.proc.pid)
    commands = [jvm.cmdline()]
    for child in jvm.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            commands.append(child.cmdline())
    assert any("org.apache.spark.deploy.SparkSubmit" in command for command in commands)
    words = {word for secret in (*SECRETS.values(), SECRET_OF_JAVA) for word in secret.split() if len(word) > 4}
    assert [word for word in words if any(word in argument for command in commands for argument in command)] == []
    [submit] = [command for command in commands if "--properties-file" in command]
    assert not Path(submit[submit.index("--properties-file") + 1]).parent.exists(), "the file is gone once it was read"


@pytest.mark.spark
@pytest.mark.parametrize("text", ["a b", " a=b:c#d!e ", "1\n2\r\t3", "back\\slash", 'q"q', "ü🔑", "${env:X}", ""])
def test_any_text_is_written_such_that_java_reads_it_back(text: str, spark: "SparkSession", tmp_path: Path) -> None:
    file = tmp_path / "x.properties"
    file.write_text(properties_file({text or "key": text}), encoding="utf-8")
    java = spark.sparkContext._jvm
    read = java.java.util.Properties()
    read.load(java.java.io.FileReader(str(file)))
    assert {key: read.getProperty(key) for key in read.stringPropertyNames()} == {text or "key": text}

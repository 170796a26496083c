"""How Spark comes by its settings, which may hold secrets."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from lagwise_spark.jvm import properties_file
from tests.fixtures.spark import SECRET_OF_JAVA, SECRETS

if TYPE_CHECKING:
    from pyspark import SparkContext


@pytest.mark.spark
def test_settings_reach_the_jvm_and_no_command_line(spark: "SparkContext") -> None:
    hadoop, java = spark._jsc.hadoopConfiguration(), spark._jvm.java.lang.System
    got = {key: hadoop.get(key.removeprefix("spark.hadoop.")) for key in SECRETS}
    assert got == SECRETS
    assert java.getProperty("lagwise.test.password") == SECRET_OF_JAVA

    jvm = psutil.Process(spark._gateway.proc.pid)
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
def test_any_text_is_written_such_that_java_reads_it_back(text: str, spark: "SparkContext", tmp_path: Path) -> None:
    file = tmp_path / "x.properties"
    file.write_text(properties_file({text or "key": text}), encoding="utf-8")
    java = spark._jvm
    read = java.java.util.Properties()
    read.load(java.java.io.FileReader(str(file)))
    assert {key: read.getProperty(key) for key in read.stringPropertyNames()} == {text or "key": text}

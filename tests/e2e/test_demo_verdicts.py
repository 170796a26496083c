"""The demo as the README names it, again and again: it must not be luck."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.broker, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("attempt", "options"), [(1, []), (2, []), (3, []), (1, ["--rocketmq"])], ids=["1", "2", "3", "rocketmq"]
)
def test_every_verdict_is_right_after_two_minutes(tmp_path: Path, attempt: int, options: list[str]) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")}
    ran = subprocess.run(
        [sys.executable, "-m", "lagwise", "demo", "--for", "120", "--no-dashboard", "--json", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    document = json.loads(ran.stdout)
    assert ran.returncode == 0, document["summary"]
    assert all(group["agrees"] for group in document["groups"])
    assert any(alert["group"] == "warehouse-sync" and alert["event"] == "firing" for alert in document["alerts"])
    assert all(alert["signed"] for alert in document["alerts"])

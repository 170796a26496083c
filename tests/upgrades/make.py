"""Makes a small lake and database with the code of the checkout that it runs in, packed: what an upgrade starts from.

Run with a checkout as working directory and its source roots on PYTHONPATH: ``python make.py NAME.tar.xz``. Beside this
file are ``before-0.1.tar.xz``, by commit f6065cb0, whose tables lacked columns and versions, and ``0.1.tar.xz``, to
be made anew until that version is released, and never again after that.
"""

import json
import sys
import tarfile
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lagwise.config import Config
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.store import Lake
from lagwise_alerts.run import alert_once
from lagwise_spark.run import analyze_once
from tests.spark.recorder import Recorder

START = datetime(2026, 11, 26, 1, tzinfo=UTC)
SAMPLES = 4 * 90  # 90 minutes
END = START + timedelta(minutes=90)
#: What groups have committed, and who owns the partition, by the number of the sample.
COMMITS: dict[tuple[str, str, int], Callable[[int], tuple[int, str | None]]] = {
    ("keeps-up", "orders", 0): lambda i: (100 * i + 95, "a"),
    ("falls-behind", "orders", 0): lambda i: (60 * i, "b"),
    ("stopped", "orders", 0): lambda i: (min(100 * i + 100, 12_000), None if i >= 120 else "c"),
}


def main(packed: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Config.model_validate({"data": folder})
        _begin(config)
        lake = Lake(config.lake_uri)
        lake.create(*ALL_TABLES)
        recorder = Recorder(lake, START, gathers=True)
        for i in range(SAMPLES):
            recorder.sample({"orders": {0: 100 * i + 100}}, {pair: at(i) for pair, at in COMMITS.items()})
        recorder.write()
        analyze_once(config)
        alert_once(config, datetime(2026, 11, 26, 2, 30, tzinfo=UTC))
        recorded = {
            table.name: Lake(config.lake_uri).read(table).to_pylist() for table in (GROUP_STATUS, PARTITION_STATUS)
        }
        Path(folder, "recorded.json").write_text(json.dumps(recorded, default=str), encoding="utf-8")
        with tarfile.open(packed, "w:xz") as tar:
            for name in ("lake", "lagwise.db", "recorded.json"):
                tar.add(Path(folder, name), name)


def _begin(config: Config) -> None:
    """As the first start of this version does; those before 0.1 had no versions to note."""
    try:
        from lagwise_app.upgrade import upgrade
    except ImportError:
        return
    upgrade(config, print)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""From the kill of a consumer to the webhook, and what the product weighs meanwhile: a run of the demo, measured.

With ``--page``, the overview is open in a headless Chromium all the time.
"""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, suppress
from typing import IO

import psutil

from benchmarks.common import options_parser, print_figures
from benchmarks.pages_server import browser_of_machine
from lagwise_sandbox.scenarios import KILLED_AFTER_SECONDS

#: The demo kills the only member of this group KILLED_AFTER_SECONDS after the start of its members.
KILLED = "warehouse-sync"
#: Length of the demo, and between which seconds after its start its CPU time is taken.
SECONDS = 170
FROM_SECONDS, TO_SECONDS = 95.0, 155.0
#: The parts by what their command lines hold; the rest are the broker and the workload.
PARTS = {
    "collector": r"-m lagwise collect\b|reader_process",
    "analysis": r"-m lagwise analyze\b|-m pyspark\.daemon|SparkSubmit",
    "alerts": r"-m lagwise alert\b",
    "dashboard": r"-m lagwise dashboard\b",
    "supervisor": r"-m lagwise demo\b",
}


class _Said:
    """What the demo writes to its standard error, read as it comes."""

    def __init__(self, stream: IO[str]) -> None:
        self.address: str | None = None
        self._stream = stream
        threading.Thread(target=self._read, daemon=True).start()

    def answers(self) -> bool:
        """Whether the dashboard can be opened."""
        if self.address is None:
            return False
        with suppress(OSError), urllib.request.urlopen(self.address, timeout=5):
            return True
        return False

    def _read(self) -> None:
        for line in self._stream:
            if found := re.search(r"dashboard: (http://\S+)", line):
                self.address = found[1]


def _part_of(command: list[str]) -> str | None:
    words = " ".join(command)
    return next((part for part, sign in PARTS.items() if re.search(sign, words)), None)


def _cpu_seconds(demo: int) -> dict[str, float]:
    """CPU time so far of each part of the product."""
    me = psutil.Process(demo)
    found = dict.fromkeys(PARTS, 0.0)
    for process in (me, *me.children(recursive=True)):
        try:
            part = _part_of(process.cmdline())
            if part is not None:
                times = process.cpu_times()
                found[part] += times.user + times.system
        except psutil.Error:
            continue  # it ended meanwhile
    return found


def _shares(demo: subprocess.Popen[str], began: float) -> dict[str, float]:
    """The share of a core that each part takes between the two times. Raises SystemExit where the demo ends before."""
    counted = []
    for at in (FROM_SECONDS, TO_SECONDS):
        while time.monotonic() < began + at:
            if demo.poll() is not None:
                raise SystemExit(f"the demo ended with {demo.returncode}: run `lagwise demo` to see why")
            time.sleep(0.2)
        counted.append((time.monotonic(), _cpu_seconds(demo.pid)))
    (start, before), (end, after) = counted
    return {part: round((after[part] - before[part]) / (end - start), 3) for part in after}


def main() -> int:
    parser = options_parser(__doc__, "the same: there is no smaller demo", has_json=True)
    parser.add_argument("--page", action="store_true", help="keep the overview open in Chromium")
    options = parser.parse_args()
    command = [sys.executable, "-m", "lagwise", "demo", "--for", str(SECONDS), "--json"]
    with ExitStack() as stack:
        demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack.callback(demo.terminate)
        assert demo.stdout is not None
        assert demo.stderr is not None
        said = _Said(demo.stderr)
        while said.address is None and demo.poll() is None:
            time.sleep(0.2)
        began = time.monotonic()  # the workload has just been started: the made-up past was judged before
        if options.page:
            page = stack.enter_context(browser_of_machine()).new_page()
            while not said.answers() and demo.poll() is None:
                time.sleep(0.2)
            if said.address is not None:
                page.goto(said.address)
        shares = _shares(demo, began)
        report = json.loads(demo.stdout.read())
        demo.wait()
    group = next(g for g in report["groups"] if g["group"] == KILLED)
    notified = [a["at_seconds"] for a in report["alerts"] if a["group"] == KILLED and a["status"] == "stopped"]
    shown = group["first_right_seconds"]
    figures = {
        "all_as_expected": report["ok"],
        "stopped_shown_after_seconds": None if shown is None else round(shown - KILLED_AFTER_SECONDS, 1),
        "stopped_posted_after_seconds": round(min(notified) - KILLED_AFTER_SECONDS, 1) if notified else None,
        "all_right_since_seconds": max((g["right_since_seconds"] or 0) for g in report["groups"]),
        "memory_mib": report["memory_mib"],
        "share_of_a_core": shares,
    }
    print_figures(figures, as_json=options.json)
    return demo.returncode


if __name__ == "__main__":
    sys.exit(main())

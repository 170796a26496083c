"""Fail if a test was skipped: ``skipped.py REPORT.xml`` (pytest's JUnit report). Standard library only."""

import sys
from xml.etree import ElementTree


def skipped(report: str) -> tuple[int, list[str]]:
    """How many tests the report has, and a line for each that was skipped. An expected failure is no skip."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))  # noqa: S314 (our own pytest wrote it a moment ago)
    lines = []
    for case in cases:
        reason = case.find("skipped")
        if reason is not None and reason.get("type") != "pytest.xfail":
            lines.append(f"{case.get('classname')}::{case.get('name')}: {reason.get('message')}")
    return len(cases), lines


def main(report: str) -> int:
    """Print the verdict. Returns the exit code."""
    total, lines = skipped(report)
    for line in lines:
        print(f"skipped in CI: {line}")  # noqa: T201 (a command's output)
    if not total:
        print("no test was run")  # noqa: T201 (a command's output)
    print(f"{total} tests, {len(lines)} skipped")  # noqa: T201 (a command's output)
    return 1 if lines or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

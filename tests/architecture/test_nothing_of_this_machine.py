"""Nothing that is committed names a machine, a registry, or a secret."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: What must not stand in a file: hosts that packages come from (every machine has its own), paths of homes, keys.
_FORBIDDEN = re.compile(
    r"(?:pypi|repo1?\.maven|repo\.maven|maven|registry|files|packages|deb|proxy)\.[a-z0-9.-]*(?:python|pypi|pythonhosted|apache|maven|npmjs|debian)"
    r"\.(?:org|com)|/home/[a-z]|/Users/[a-z]|BEGIN (?:RSA |EC )?PRIVATE KEY",
    re.IGNORECASE,
)


def committed() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and name != Path(__file__).name]


def test_no_hosts_homes_or_keys() -> None:
    found = []
    for path in committed():
        if path == Path(__file__) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in _FORBIDDEN.finditer(text)]
    assert found == []

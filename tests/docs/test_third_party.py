"""The licenses of what Lagwise consists of, and its bill of materials: both made from the lock file."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_installation_files import locked

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "bill_of_materials.py"
#: Licenses that Lagwise, under Apache-2.0, may be distributed with. LGPL: linked to at run time and never changed.
_ALLOWED = re.compile(
    r"Apache|MIT|BSD|ISC|PSF|Python Software Foundation|MPL|Mozilla|Unlicense|Zlib|0BSD|CC0|LGPL|Lesser", re.IGNORECASE
)


def _page() -> dict[str, tuple[str, str]]:
    text = (ROOT / "docs" / "third-party.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (\S+) \| (.+) \|$", text, re.MULTILINE)
    return {name: (version, license) for name, version, license in rows if name != "package"}


def test_the_page_has_every_package_of_the_lock_file() -> None:
    assert {name: version for name, (version, _) in _page().items()} == locked(), "run `make lock`"


def test_every_license_may_be_combined_with_ours() -> None:
    assert {name: license for name, (_, license) in _page().items() if not _ALLOWED.search(license)} == {}


def test_the_bill_of_materials_names_all_of_them(tmp_path: Path) -> None:
    target = tmp_path / "dist" / "bill.json"
    subprocess.run([sys.executable, "-W", "error", SCRIPT, target], check=True, timeout=60)
    bill = json.loads(target.read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    found = {part["name"]: part for part in bill["components"]}
    plotly = found.pop("plotly.js")
    assert len(plotly["hashes"][0]["content"]) == 64
    assert {name: part["version"] for name, part in found.items()} == locked()
    assert all(part["purl"] == f"pkg:pypi/{name}@{part['version']}" for name, part in found.items())
    assert all(part["licenses"] for part in found.values())
    [own] = [one for one in bill["dependencies"] if one["ref"] == bill["metadata"]["component"]["bom-ref"]]
    assert len(own["dependsOn"]) == len(found) + 1

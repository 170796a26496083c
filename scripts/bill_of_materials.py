"""Which packages Lagwise consists of, and their licenses: a bill of materials (CycloneDX 1.6) and a page of docs.

``bill_of_materials.py FILE`` writes the bill, ``--page`` writes ``docs/third-party.md``. The packages are those of the
lock file; licenses are what the packages themselves declare, read from those that are installed here.
"""

import hashlib
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "deploy" / "container" / "requirements.txt"
PAGE = ROOT / "docs" / "third-party.md"
PLOTLY = ROOT / "dashboard" / "lagwise_dashboard" / "widgets" / "charts" / "plotly" / "plotly-cartesian.min.js"
_LOCKED = re.compile(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+) ", re.MULTILINE)
#: Longer texts in the field are whole licenses.
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Package:
    """A package of the lock file, which has its hashes, and its license: "" where it declares none."""

    name: str
    version: str
    license: str


def locked() -> list[Package]:
    """All packages of the lock file."""
    found = _LOCKED.findall(LOCK.read_text(encoding="utf-8"))
    return [Package(name, version, declared_license(name)) for name, version in found]


def declared_license(name: str) -> str:
    """What a package says of its license: its expression, else its classifiers, else the name in its field."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return ""
    if expression := found.get("License-Expression"):
        return str(expression)
    classifiers = [one for one in found.get_all("Classifier") or [] if one.startswith("License :: ")]
    names = [one.rpartition(" :: ")[2] for one in classifiers if one != "License :: OSI Approved"]
    field = (found.get("License") or "").strip()
    if not names and field and "\n" not in field and len(field) <= _LONGEST_NAME:
        names = [field]
    return ", ".join(sorted(names))


def bill(packages: list[Package]) -> str:
    """The bill of materials as JSON."""
    from lagwise import __version__

    licenses = LicenseFactory()
    bom = Bom()
    lagwise = Component(
        name="lagwise",
        version=__version__,
        type=ComponentType.APPLICATION,
        licenses=[licenses.make_from_string("Apache-2.0")],
    )
    bom.metadata.component = lagwise
    parts = [
        Component(
            name=package.name,
            version=package.version,
            type=ComponentType.LIBRARY,
            purl=PackageURL("pypi", None, package.name, package.version),
            bom_ref=f"{package.name}=={package.version}",
            licenses=[licenses.make_from_string(package.license)] if package.license else [],
        )
        for package in packages
    ]
    parts.append(
        Component(
            name="plotly.js",
            version=plotly_version(),
            type=ComponentType.LIBRARY,
            purl=PackageURL("npm", None, "plotly.js-cartesian-dist-min", plotly_version()),
            licenses=[licenses.make_from_string("MIT")],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(PLOTLY.read_bytes()).hexdigest())],
        )
    )
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(lagwise, parts)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def plotly_version() -> str:
    """The version of the copy of plotly.js, by its first lines."""
    found = re.search(r"v(\d+\.\d+\.\d+)", PLOTLY.read_text(encoding="utf-8")[:200])
    assert found is not None, "the file begins with its version"
    return found[1]


def page(packages: list[Package]) -> str:
    """The page of docs."""
    rows = [f"| {one.name} | {one.version} | {one.license or 'not declared'} |" for one in packages]
    return f"""<!-- Written by `make lock`; do not edit. -->

# Third-party software

What `lagwise[all]` consists of, in the versions of the container, with the licenses that the packages declare.
The dashboard also carries a copy of plotly.js {plotly_version()} (MIT). Java and the jars of the demo's brokers are not
part of Lagwise. `make sbom` writes the same as CycloneDX, for tools that look for known vulnerabilities.

| package | version | license |
|---|---|---|
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    if sys.argv[1:] == ["--page"]:
        PAGE.write_text(page(locked()), encoding="utf-8")
    else:
        [target] = map(Path, sys.argv[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(bill(locked()), encoding="utf-8")

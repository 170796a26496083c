"""Renders the Helm chart with its defaults into deploy/kubernetes/lagwise.yaml.

The first line of the file has a fingerprint of the chart. A test compares it: it notices a change that was not rendered
where there is no Helm.
"""

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "deploy" / "helm" / "lagwise"
#: What the manifests are rendered for: a Helm that was not released by its makers knows no version of its own.
KUBERNETES = "1.33.0"
RENDERED = ROOT / "deploy" / "kubernetes" / "lagwise.yaml"


def fingerprint() -> str:
    """Of all files of the chart."""
    digest = hashlib.sha256()
    for file in sorted(path for path in CHART.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(CHART).as_posix()}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def render(*options: str, helm: str = "helm") -> str:
    """The manifests, as Helm makes them."""
    command = [helm, "template", "lagwise", str(CHART), "--kube-version", KUBERNETES, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def document(helm: str = "helm") -> str:
    """The file for those who do not use Helm."""
    head = f"# Rendered from deploy/helm/lagwise ({fingerprint()}) by `make manifests`: change the chart instead."
    return f"{head}\n{render(helm=helm)}"


if __name__ == "__main__":
    RENDERED.write_text(document(), encoding="utf-8")

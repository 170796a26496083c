"""The manifests and the Helm chart: valid by Kubernetes' own schemas, and true about the program that they run.

Few machines have Helm. So the chart is rendered into deploy/kubernetes, which is tested here; a fingerprint says that
the rendering is current. Tests marked `long` render the chart anew, in all sizes.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft7Validator

from lagwise import __version__
from lagwise.config import load_config
from lagwise.config.channels import Email
from lagwise.platform.health import ASSISTANTS, COMMANDS
from lagwise_app.assistants.serve import HEALTH_PATH
from lagwise_app.cli import cli
from scripts import manifests

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "lagwise"
SIZES = ("small", "medium", "large")
PARTS = {"collect", "analyze", "alert", "dashboard", "serve"}
#: Those that the defaults leave out.
OFF = {"mcp"}
#: The oldest and the newest version that the chart is checked against.
VERSIONS = ("1.25", "1.37")

DOCUMENTS: list[dict[str, Any]] = [
    one for one in yaml.safe_load_all(manifests.RENDERED.read_text(encoding="utf-8")) if one is not None
]
DEPLOYMENTS = {
    one["metadata"]["name"].removeprefix("lagwise-"): one for one in DOCUMENTS if one["kind"] == "Deployment"
}


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [one for one in DOCUMENTS if one["kind"] == kind]


def container(part: str) -> dict[str, Any]:
    (found,) = DEPLOYMENTS[part]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def check(documents: list[dict[str, Any]]) -> None:
    for version in VERSIONS:
        for document in documents:
            kubernetes_validate.validate(document, version, strict=True)


def test_the_manifests_are_rendered_from_the_chart_as_it_is() -> None:
    head = manifests.RENDERED.read_text(encoding="utf-8").splitlines()[0]
    assert f"({manifests.fingerprint()})" in head, "run `make manifests`"


def test_every_manifest_is_valid() -> None:
    assert {one["kind"] for one in DOCUMENTS} == {
        "ConfigMap", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Service", "ServiceAccount",
    }  # fmt: skip
    check(DOCUMENTS)


def test_a_manifest_that_is_wrong_is_found() -> None:
    wrong = yaml.safe_load(yaml.safe_dump(DEPLOYMENTS["serve"]))
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError, match="readOnlyRootFileSystem"):
        check([wrong])


def test_the_comment_names_the_usual_ports_that_the_network_policy_leaves_out() -> None:
    """Whoever sends e-mail or OTLP finds there why nothing arrives."""
    (found,) = re.findall(r"((?:  #.*\n)+)  egressPorts: \[(.*)\]", (CHART / "values.yaml").read_text(encoding="utf-8"))
    named, allowed = ({int(port) for port in re.findall(r"\b\d+\b", text)} for text in found)
    usual = {Email.model_construct(security=one, port=None).server_port for one in ("starttls", "tls", "none")}
    assert {4318, 9876, 10911, *usual} <= named
    assert not named & allowed


def test_the_base_of_an_overlay_names_them() -> None:
    base = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8"))
    assert base["resources"] == [manifests.RENDERED.name]


def test_the_version_is_that_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert {container(part)["image"] for part in DEPLOYMENTS} == {f"lagwise:{__version__}"}


def test_the_settings_are_accepted_and_hold_no_secret(tmp_path: Path) -> None:
    (config_map,) = of_kind("ConfigMap")
    file = tmp_path / "lagwise.yaml"
    file.write_text(config_map["data"]["lagwise.yaml"], encoding="utf-8")
    config = load_config(file, environment={})
    assert config.database_url == "${env:LAGWISE_SECRET_DATABASE}"
    assert config.dashboard.host == config.server.host == "0.0.0.0"
    for part in ("dashboard", "serve"):
        (port,) = container(part)["ports"]
        assert port["containerPort"] == (config.dashboard.port if part == "dashboard" else config.server.port)
    mounts = {mount["name"]: mount["mountPath"] for mount in container("collect")["volumeMounts"]}
    assert mounts["lake"] == config.data
    assert mounts["state"] == str(config.state_dir)


def test_every_part_is_a_command_of_the_program() -> None:
    assert set(DEPLOYMENTS) == PARTS
    for part in DEPLOYMENTS:
        assert container(part)["args"] == ["--config", "/etc/lagwise/lagwise.yaml", part]
        assert part in cli.commands


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_part_may_do_as_little_as_possible(part: str) -> None:
    pod = DEPLOYMENTS[part]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    # Variables such as LAGWISE_SERVE_PORT would be taken for settings, and rejected.
    assert pod["enableServiceLinks"] is False
    assert container(part)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} == set(container(part)["resources"]["requests"])
    assert "memory" in container(part)["resources"]["limits"]


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_probe_asks_what_the_part_answers(part: str) -> None:
    probe = container(part)["livenessProbe"]
    if part in ("dashboard", "serve"):
        assert probe["httpGet"]["path"] == ("/_stcore/health" if part == "dashboard" else "/healthz")
        return
    _, *arguments = probe["exec"]["command"]
    assert arguments[:3] == ["--config", "/etc/lagwise/lagwise.yaml", "health"]
    parsed = cli.commands["health"].make_context("health", arguments[3:]).params
    assert parsed["process"] == {"collect": "collector", "analyze": "analysis", "alert": "alerts"}[part]
    # Longer than it takes to stop restarting a part that only waits for a broker.
    assert parsed["within_seconds"] >= 600


def test_a_service_and_the_network_policy_reach_only_what_listens() -> None:
    selectors = [one["spec"]["selector"] for one in of_kind("Service")]
    assert {one["app.kubernetes.io/component"] for one in selectors} == {"dashboard", "serve"}
    for selector in selectors:
        labels = DEPLOYMENTS[selector["app.kubernetes.io/component"]]["spec"]["template"]["metadata"]["labels"]
        assert selector.items() <= labels.items()
    (policy,) = of_kind("NetworkPolicy")
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    (ingress,) = policy["spec"]["ingress"]
    assert [one["port"] for one in ingress["ports"]] == [8501, 8603]
    for one in DEPLOYMENTS.values():
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("size", SIZES)
def test_sizes_change_what_the_chart_has(size: str) -> None:
    """Helm would ignore a key that no template reads."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    changed = yaml.safe_load((CHART / f"values-{size}.yaml").read_text(encoding="utf-8"))
    assert set(changed) <= set(values)
    assert set(changed.get("parts", {})) <= PARTS | OFF == set(values["parts"])
    for part in changed.get("parts", {}).values():
        assert set(part) <= {"replicas", "resources"}


SCHEMA = Draft7Validator(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))  # Helm's draft


def values_with(changed: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """The values of the chart with others in their place, as Helm merges them."""
    merged = dict(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")) if base is None else base)
    for key, value in changed.items():
        is_map = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = values_with(value, merged[key]) if is_map else value
    return merged


def test_the_schema_is_one_and_knows_every_value() -> None:
    SCHEMA.check_schema(SCHEMA.schema)
    known = SCHEMA.schema["properties"]
    values = values_with({})
    assert set(known) - {"global"} == set(values)
    for name, value in values.items():
        if isinstance(value, dict) and "properties" in known[name] and name != "settings":
            assert set(known[name]["properties"]) == set(value), name


@pytest.mark.parametrize("size", [None, *SIZES])
def test_the_values_of_every_size_obey_the_schema(size: str | None) -> None:
    changed = yaml.safe_load((CHART / f"values-{size}.yaml").read_text(encoding="utf-8")) if size else {}
    assert [error.message for error in SCHEMA.iter_errors(values_with(changed))] == []


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"replicas": 2}, []),
        ({"parts": {"collector": {"replicas": 1, "resources": {}}}}, ["parts"]),
        ({"parts": {"alert": {"replicas": "2"}}}, ["parts", "alert", "replicas"]),
        ({"parts": {"alert": {"replica": 2}}}, ["parts", "alert"]),
        (
            {"parts": {"serve": {"resources": {"limits": {"memory": "1 GB"}}}}},
            ["parts", "serve", "resources", "limits", "memory"],
        ),
        ({"image": {"pullPolicy": "Sometimes"}}, ["image", "pullPolicy"]),
        ({"secret": "My Secret"}, ["secret"]),
        ({"lake": {"size": "big"}}, ["lake", "size"]),
        ({"lake": {"accessModes": []}}, ["lake", "accessModes"]),
        ({"settings": {"dashboard": {"host": "127.0.0.1"}}}, ["settings", "dashboard", "host"]),
        ({"settings": {"mcp": {"host": "localhost", "port": 8604}}}, ["settings", "mcp", "host"]),
        ({"settings": {"mcp": {"host": "0.0.0.0"}}}, ["settings", "mcp"]),
        ({"settings": {"server": {"port": 0}}}, ["settings", "server", "port"]),
        ({"settings": {"state_dir": "state"}}, ["settings", "state_dir"]),
        ({"networkPolicy": {"egressPorts": ["9092"]}}, ["networkPolicy", "egressPorts", 0]),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_values_that_are_wrong_are_refused_where_they_are(wrong: dict[str, Any], place: list[str | int]) -> None:
    assert [list(error.absolute_path) for error in SCHEMA.iter_errors(values_with(wrong))] == [place]


needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="needs helm")


@pytest.mark.long
@needs_helm
def test_helm_renders_what_is_committed() -> None:
    assert manifests.document() == manifests.RENDERED.read_text(encoding="utf-8")
    subprocess.run(["helm", "lint", "--strict", str(CHART)], check=True, capture_output=True)


@pytest.mark.long
@needs_helm
@pytest.mark.parametrize("size", SIZES)
def test_every_size_is_valid(size: str) -> None:
    documents = list(yaml.safe_load_all(manifests.render("-f", str(CHART / f"values-{size}.yaml"))))
    check(documents)
    replicas = {one["metadata"]["name"]: one["spec"]["replicas"] for one in documents if one["kind"] == "Deployment"}
    assert set(replicas.values()) == {2 if size == "large" else 1}


@pytest.mark.long
@needs_helm
def test_a_lake_in_an_object_store_needs_no_volume() -> None:
    options = ("--set", "lake.enabled=false", "--set", "settings.data=s3://lake/lagwise")
    documents = list(yaml.safe_load_all(manifests.render(*options)))
    check(documents)
    assert "PersistentVolumeClaim" not in {one["kind"] for one in documents}


@pytest.mark.long
@needs_helm
def test_assistants_are_served_where_the_settings_say_so() -> None:
    options = ("--set", "settings.mcp.host=0.0.0.0", "--set", "settings.mcp.port=8604")
    documents = list(yaml.safe_load_all(manifests.render(*options)))
    check(documents)
    found = {(one["kind"], one["metadata"]["name"]): one["spec"] for one in documents if "spec" in one}
    (served,) = found["Deployment", "lagwise-mcp"]["template"]["spec"]["containers"]
    assert served["args"][2:] == [*COMMANDS[ASSISTANTS]]
    assert served["livenessProbe"]["httpGet"] == {"path": HEALTH_PATH, "port": "http"}
    assert [one["port"] for one in found["Service", "lagwise-mcp"]["ports"]] == [8604]
    (ingress,) = found["NetworkPolicy", "lagwise"]["ingress"]
    assert [one["port"] for one in ingress["ports"]] == [8501, 8603, 8604]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kustomize_builds_the_base() -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, text=True, check=True
    ).stdout
    documents = list(yaml.safe_load_all(built))
    assert {one["metadata"]["namespace"] for one in documents} == {"lagwise"}
    check(documents)

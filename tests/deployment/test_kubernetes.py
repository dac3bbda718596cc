"""The manifests in deploy/kubernetes are what Kubernetes' published schemas take, and keep what the image promises."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from noisescale.config import Config
from noisescale_server.process.settings import Settings

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.30", "1.37")
"""`preStop.sleep` is on by default from 1.30 on."""


def manifests() -> dict[str, dict[str, Any]]:
    """By kind."""
    files = [path for path in sorted(FOLDER.glob("*.yaml")) if path.name != "kustomization.yaml"]
    found = [one for path in files for one in yaml.safe_load_all(path.read_text())]
    return {one["kind"]: one for one in found}


ALL = manifests()
PODS = {kind: ALL[kind]["spec"]["template"]["spec"] for kind in ("Deployment", "Job")}


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ALL)
def test_every_manifest_is_what_the_published_schema_takes(kind: str, version: str) -> None:
    import kubernetes_validate  # with jsonschema and its grammar of addresses, which takes a second to build

    kubernetes_validate.validate(ALL[kind], version, strict=True)


def test_a_field_that_there_is_not_is_noticed() -> None:
    import kubernetes_validate

    wrong = ALL["Service"] | {"spec": ALL["Service"]["spec"] | {"port": 80}}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


def test_the_kustomization_names_every_file() -> None:
    said = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())

    assert set(said["resources"]) | {"kustomization.yaml"} == {path.name for path in FOLDER.glob("*.yaml")}
    assert {container["image"] for pod in PODS.values() for container in pod["containers"]} == {
        said["images"][0]["name"]
    }


@pytest.mark.parametrize("kind", PODS)
def test_no_pod_is_root_writes_to_its_image_or_speaks_with_the_cluster(kind: str) -> None:
    pod, (container,) = PODS[kind], PODS[kind]["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert f"USER {pod['securityContext']['runAsUser']}" in (FOLDER.parents[1] / "Dockerfile").read_text()


def test_two_replicas_take_turns_and_one_always_answers() -> None:
    spec = ALL["Deployment"]["spec"]

    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert ALL["PodDisruptionBudget"]["spec"]["minAvailable"] == 1
    (container,) = PODS["Deployment"]["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez", "a database that is away ends no process"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_whoever_selects_the_servers_selects_their_pods() -> None:
    labels = ALL["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        ALL["Deployment"]["spec"]["selector"]["matchLabels"],
        ALL["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        ALL["Service"]["spec"]["selector"],
    ]

    assert all(selector == labels for selector in selectors)
    (names,) = ALL["NetworkPolicy"]["spec"]["podSelector"]["matchExpressions"]
    job = ALL["Job"]["spec"]["template"]["metadata"]["labels"]
    assert set(names["values"]) == {labels[names["key"]], job[names["key"]]}


def test_the_owner_of_the_tables_is_known_to_the_migration_alone() -> None:
    secrets = {
        kind: {one["secretRef"]["name"] for one in pod["containers"][0]["envFrom"] if "secretRef" in one}
        for kind, pod in PODS.items()
    }

    assert secrets == {"Deployment": {"noisescale-server"}, "Job": {"noisescale-server", "noisescale-owner"}}


TRAINING = {one["kind"]: one for one in yaml.safe_load_all((FOLDER / "training" / "job.yaml").read_text())}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", TRAINING)
def test_the_example_of_a_training_job_is_what_the_published_schema_takes(kind: str, version: str) -> None:
    import kubernetes_validate

    kubernetes_validate.validate(TRAINING[kind], version, strict=True)


def test_a_training_job_has_its_key_from_a_secret_and_its_records_on_a_volume_and_goes_on_in_the_same_run() -> None:
    pod = TRAINING["Job"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = {one["name"]: one.get("value") or one["valueFrom"] for one in container["env"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}

    assert settings["NOISESCALE_API_KEY"] == {
        "secretKeyRef": {"name": "noisescale-write-key", "key": "NOISESCALE_API_KEY"}
    }
    kept = volumes[mounts[settings["NOISESCALE_DIR"]]]["persistentVolumeClaim"]["claimName"]
    assert kept == TRAINING["PersistentVolumeClaim"]["metadata"]["name"]
    # Kubernetes labels each pod of a Job with the Job's id, which is a UUID
    same = "metadata.labels['batch.kubernetes.io/controller-uid']"
    assert settings["NOISESCALE_RUN_ID"] == {"fieldRef": {"fieldPath": same}}
    (host,) = ALL["Ingress"]["spec"]["tls"][0]["hosts"]
    assert settings["NOISESCALE_URL"] == f"https://{host}"


def test_the_client_reads_every_setting_of_a_training_job(tmp_path: Path) -> None:
    (container,) = TRAINING["Job"]["spec"]["template"]["spec"]["containers"]
    given = {"NOISESCALE_API_KEY": "a key", "NOISESCALE_DIR": str(tmp_path), "NOISESCALE_RUN_ID": str(uuid4())}
    environ = {one["name"]: given.get(one["name"], one.get("value")) for one in container["env"]}

    config = Config.from_env(environ)

    assert set(environ) == {"NOISESCALE_URL", *given}
    assert (config.url, config.api_key, config.run_id) == (
        environ["NOISESCALE_URL"],
        "a key",
        environ["NOISESCALE_RUN_ID"],
    )
    assert config.folders[0].is_relative_to(tmp_path)


def test_every_setting_is_one_of_the_server() -> None:
    names = {f"NOISESCALE_{name.upper()}" for name in Settings.model_fields}

    assert set(ALL["ConfigMap"]["data"]) <= names

"""Manifests for the KubeRay operator: reading them, and the rules that they must follow. Uses no network."""

import dataclasses
import difflib
import importlib.metadata
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orch.cluster.launcher import Launcher, NodeType
from orch.cluster.placeholders import is_placeholder
from orch.cluster.problem import Problem, error, warning
from orch.cluster.versions import find_versions

PROVIDER = "kuberay"
GPU = "nvidia.com/gpu"
DEFAULT_GRACE = 30
"""Seconds that Kubernetes gives a pod to end if its manifest does not say."""
RECLAIM_FILE = "ORCH_RECLAIM_FILE"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "RayJob": ("entrypoint", "rayClusterSpec"),
    "RayCluster": ("headGroupSpec", "rayVersion", "workerGroupSpecs"),
}
_GROUP = ("groupName", "maxReplicas", "minReplicas", "template")
_SECRET = re.compile(r"(?i)secret|password|access_key|token$|credential")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:m|k|[KMGT]i?)?")


def is_manifest(config: Mapping[str, Any]) -> bool:
    """Return whether the settings are a manifest of Kubernetes and not a launcher file of `ray up`."""
    return "apiVersion" in config or "kind" in config


@dataclasses.dataclass(frozen=True, slots=True)
class _Pods:
    """The head's pod, or the pods of a group of workers."""

    name: str
    group: Mapping[str, Any]

    @property
    def spec(self) -> Mapping[str, Any]:
        return _mapping(_mapping(self.group.get("template")).get("spec"))

    @property
    def container(self) -> Mapping[str, Any]:
        """The container that runs Ray, which is the first."""
        containers = self.spec.get("containers")
        return _mapping(containers[0]) if isinstance(containers, list) and containers else {}

    @property
    def environment(self) -> dict[str, str | None]:
        """The variables of the container; None for one that comes from elsewhere, such as a secret."""
        entries = [_mapping(each) for each in self.container.get("env") or []]
        return {str(each.get("name")): str(each["value"]) if "value" in each else None for each in entries}

    def amount(self, kind: str, resource: str) -> str | None:
        """Return how much of a resource is asked for (requests) or allowed (limits)."""
        found = _mapping(_mapping(self.container.get("resources")).get(kind)).get(resource)
        return None if found is None else str(found)


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest, as far as `orch` knows it."""

    path: Path
    config: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.config.get("kind"))

    @property
    def spec(self) -> Mapping[str, Any]:
        return _mapping(self.config.get("spec"))

    @property
    def cluster(self) -> Mapping[str, Any]:
        return _mapping(self.spec.get("rayClusterSpec")) if self.kind == "RayJob" else self.spec

    @property
    def head(self) -> _Pods:
        return _Pods("the head", _mapping(self.cluster.get("headGroupSpec")))

    @property
    def workers(self) -> Sequence[_Pods]:
        groups = self.cluster.get("workerGroupSpecs")
        found = [_mapping(each) for each in groups] if isinstance(groups, list) else []
        return [_Pods(f"the group {each.get('groupName')}", each) for each in found]

    @property
    def launcher(self) -> Launcher:
        """The manifest as a launcher, for plans and messages."""
        image = str(self.head.container.get("image") or "")
        return Launcher(
            path=self.path,
            provider=PROVIDER,
            max_workers=sum(_whole(each.group.get("maxReplicas")) or 0 for each in self.workers),
            store=self.head.environment.get("ORCH_STORE"),
            versions=find_versions(f"ray=={self.cluster.get('rayVersion')}", image),
            head_start="",
            worker_start="",
            workers=tuple(
                NodeType(
                    name=each.name,
                    instance_type=None,
                    num_gpus=_whole(each.amount("limits", GPU)),
                    num_cpus=_whole(each.amount("limits", "cpu")),
                    min_workers=_whole(each.group.get("minReplicas")) or 0,
                    max_workers=_whole(each.group.get("maxReplicas")),
                    spot=False,
                    image=each.container.get("image"),
                    security_groups=(),
                    instance_profile=each.spec.get("serviceAccountName"),
                    key_name=None,
                )
                for each in self.workers
            ),
            docker_image=image,
        )


def check_manifest(manifest: Manifest) -> Iterator[Problem]:
    """Report what keeps a manifest from running sweeps, from growing, or from being safe."""
    yield from _check_fields(manifest)
    ray, wanted = str(manifest.cluster.get("rayVersion")), importlib.metadata.version("ray")
    if manifest.cluster and ray != wanted:
        yield error(f"rayVersion is {ray} and this environment has {wanted}: make them equal, in the image too")
    if not manifest.cluster.get("enableInTreeAutoscaling"):
        yield warning("the cluster keeps its size whatever there is to do: set enableInTreeAutoscaling: true")
    yield from _check_access(manifest)
    if str(_mapping(manifest.head.group.get("rayStartParams")).get("num-cpus")) != "0":
        yield error('the head would run trials and starve the driver: give its rayStartParams num-cpus: "0"')
    for pods in (manifest.head, *manifest.workers):
        yield from _check_pods(pods)
    for pods in manifest.workers:
        yield from _check_workers(pods, manifest)


def _check_fields(manifest: Manifest) -> Iterator[Problem]:
    if manifest.kind not in _NEEDED:
        close = difflib.get_close_matches(manifest.kind, _NEEDED, n=1)
        remedy = f"did you mean {close[0]}?" if close else "use RayJob or RayCluster, as in cluster/kuberay.yaml"
        yield error(f"the kind {manifest.kind} runs no sweep: {remedy}")
        return
    if manifest.config.get("apiVersion") != "ray.io/v1":
        yield error(f"apiVersion is {manifest.config.get('apiVersion')}: use ray.io/v1")
    metadata = _mapping(manifest.config.get("metadata"))
    if not (metadata.get("name") or metadata.get("generateName")):
        yield error("the manifest has no name: set metadata.name or metadata.generateName")
    places = {"spec": (manifest.spec, _NEEDED[manifest.kind])}
    if manifest.kind == "RayJob":
        places["spec.rayClusterSpec"] = (manifest.cluster, _NEEDED["RayCluster"])
    places |= {each.name: (each.group, _GROUP) for each in manifest.workers}
    for place, (found, needed) in places.items():
        for name in needed:
            if name not in found:
                close = difflib.get_close_matches(name, found, n=1)
                yield error(f"{place} has no {name}: {f'did you mean it by {close[0]}?' if close else 'add it'}")
    entrypoint = str(manifest.spec.get("entrypoint", ""))
    if entrypoint.startswith("orch ") and "--yes" not in entrypoint.split():
        yield error("the entrypoint may ask a question that nobody can answer: add --yes")


def _check_access(manifest: Manifest) -> Iterator[Problem]:
    with_token = _mapping(manifest.cluster.get("authOptions")).get("mode") == "token"
    for pods in (manifest.head, *manifest.workers):
        if not with_token and pods.environment.get("RAY_AUTH_MODE") != "token":
            yield error(f"Ray's token authentication is off on {pods.name}: set authOptions: {{mode: token}}")
        for name, value in pods.environment.items():
            if value and _SECRET.search(name):
                remedy = "take it from a Secret (valueFrom), or give the service account a role"
                yield error(f"{pods.name} has {name} as plain text in the file: {remedy}")
    service = _mapping(manifest.head.group.get("headService"))
    exposed = [manifest.head.group.get("serviceType"), _mapping(service.get("spec")).get("type")]
    if {"LoadBalancer", "NodePort"} & set(map(str, exposed)):
        yield error("the head's ports would be open outside the cluster: leave the service at ClusterIP")


def _check_pods(pods: _Pods) -> Iterator[Problem]:
    image = str(pods.container.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    if not image:
        yield error(f"{pods.name} has no image: build one from cluster/Dockerfile")
    elif not is_placeholder(image) and not re.match(r"v?\d", tag) and "@sha256:" not in image:
        yield error(f"the image {image} changes under its name: pin one by its version")
    store = pods.environment.get("ORCH_STORE", "")
    mounts = [_mapping(each) for each in pods.container.get("volumeMounts") or []]
    mounted = [str(each.get("mountPath")) for each in mounts if each.get("mountPath")]
    if store == "":
        yield error(f"ORCH_STORE is not set on {pods.name}: add it to env, such as s3://bucket/runs")
    elif store and not any(mark in store for mark in ("://", "EDIT-ME")) and not _inside(store, mounted):
        yield error(f"ORCH_STORE={store} is a different folder in every pod: use s3://bucket/runs or a volume")
    in_bucket = re.match(r"(?:s3|gs)://", store or "")
    if in_bucket and not (pods.spec.get("serviceAccountName") or any(map(_SECRET.search, pods.environment))):
        yield error(f"{pods.name} may not reach the store {store}: set serviceAccountName to an account that may")
    for kind in ("requests", "limits"):
        for resource in ("cpu", "memory"):
            amount = pods.amount(kind, resource)
            if amount is None:
                yield error(f"{pods.name} has no {kind} of {resource}: Ray and Kubernetes plan by them; add them")
            elif not _QUANTITY.fullmatch(amount):
                yield error(f"{pods.name} has {amount} as {kind} of {resource}, which is no quantity: use 8 or 64Gi")


def _check_workers(pods: _Pods, manifest: Manifest) -> Iterator[Problem]:
    asked, allowed = pods.amount("requests", GPU), pods.amount("limits", GPU)
    if allowed is None:
        yield warning(f"{pods.name} has no GPU ({GPU} in its limits): trials train on CPUs there")
    elif _whole(allowed) is None:
        yield error(f"{pods.name} has {allowed} GPUs: use a whole number; --gpus-per-trial shares them")
    if asked is not None and asked != allowed:
        yield error(f"{pods.name} requests {asked} GPUs and is limited to {allowed}: make them equal")
    least, most = (_whole(pods.group.get(name)) for name in ("minReplicas", "maxReplicas"))
    if least is not None and least < 1:
        yield error(f"{pods.name} starts with no pod, and the sweep asks what a machine has: use minReplicas: 1")
    if least is not None and most is not None and most < least:
        yield error(f"{pods.name} has minReplicas {least} and maxReplicas {most}: make them agree")
    if pods.container.get("image") != manifest.head.container.get("image"):
        yield error(f"{pods.name} has another image than the head: use one for both")
    if pods.environment.get("ORCH_STORE") != manifest.head.environment.get("ORCH_STORE"):
        yield error(f"{pods.name} has another ORCH_STORE than the head: make them equal")
    if pods.environment.get("OMP_NUM_THREADS") != "1":
        yield warning(f"OMP_NUM_THREADS is not 1 in {pods.name}, so trials would fight for CPUs: set it in env")
    hook = str(_mapping(pods.container.get("lifecycle")).get("preStop"))
    file = pods.environment.get(RECLAIM_FILE)
    if not file or file not in hook:
        remedy = f"set {RECLAIM_FILE} and let preStop touch that file, as in cluster/kuberay.yaml"
        yield warning(f"a pod of {pods.name} that is evicted loses a minute of training: {remedy}")
    waits = max(map(float, re.findall(r"\bsleep (\d+)", hook)), default=0.0)
    grace = pods.spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    if isinstance(grace, (int, float)) and grace <= waits:
        yield warning(
            f"{pods.name} has terminationGracePeriodSeconds {grace:g}, which ends its preStop of {waits:g} s early:"
            " use a longer one"
        )


def _inside(folder: str, places: Sequence[str]) -> bool:
    return any(Path(folder).is_relative_to(place) for place in places)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    """Return a whole number, which may stand in quotes; None for anything else."""
    return int(value) if re.fullmatch(r"\d+", str(value)) else None

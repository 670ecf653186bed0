r"""Write the data files of this package from the sources of Kubernetes, JobSet and Trainer.

Run it with the directory of the Go module (`go mod download -json k8s.io/kubernetes@v1.37.1` prints `Dir`):

    python -m muster.simulator.apiserver.schemas.regenerate kubernetes 1.37.1 DIR
    python -m muster.simulator.apiserver.schemas.regenerate crds jobset-0.12.0 \
        DIR/config/components/crd/bases/*.yaml
    python -m muster.simulator.apiserver.schemas.regenerate crds trainer-2.3.0 \
        DIR/manifests/base/crds/trainer*.yaml

Descriptions are removed: they are nine tenths of the size and nothing reads them.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PREFIX = "#/components/schemas/"

DOCUMENTS = (
    "api__v1",
    "apis__batch__v1",
    "apis__coordination.k8s.io__v1",
    "apis__scheduling.k8s.io__v1",
    "apis__scheduling.k8s.io__v1alpha2",
    "apis__scheduling.k8s.io__v1alpha3",
    "apis__scheduling.k8s.io__v1beta1",
    "apis__admissionregistration.k8s.io__v1",
    "apis__apiextensions.k8s.io__v1",
    "apis__authentication.k8s.io__v1",
    "apis__authorization.k8s.io__v1",
    "apis__autoscaling__v1",
    "apis__policy__v1",
)
"""The files of `api/openapi-spec/v3` to read; those that a release does not have are skipped."""

KINDS = {
    ("", "v1"): "Namespace Node Pod Event ConfigMap Secret Service ServiceAccount Binding",
    ("batch", "v1"): "Job",
    ("coordination.k8s.io", "v1"): "Lease",
    ("scheduling.k8s.io", "v1"): "PriorityClass",
    ("scheduling.k8s.io", "v1alpha2"): "Workload PodGroup",
    ("scheduling.k8s.io", "v1alpha3"): "Workload PodGroup CompositePodGroup",
    ("scheduling.k8s.io", "v1beta1"): "Workload PodGroup",
    ("admissionregistration.k8s.io", "v1"): (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    ),
    ("apiextensions.k8s.io", "v1"): "CustomResourceDefinition",
    ("authentication.k8s.io", "v1"): "",
    ("authorization.k8s.io", "v1"): "SelfSubjectAccessReview",
    ("autoscaling", "v1"): "Scale",
    ("policy", "v1"): "Eviction",
}
"""The kinds to keep, by group and version."""


def without_descriptions(node: Any) -> Any:
    """Return a copy of a schema without descriptions, and with an `allOf` of one reference replaced by it."""
    if isinstance(node, list):
        return [without_descriptions(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: without_descriptions(value)
        for key, value in node.items()
        if not (key == "description" and isinstance(value, str))
    }
    wrapped = kept.get("allOf")
    if isinstance(wrapped, list) and len(wrapped) == 1 and set(wrapped[0]) == {"$ref"}:
        return dict(wrapped[0])
    return kept


def references(node: Any) -> set[str]:
    """Return the names of the components that a schema refers to."""
    if isinstance(node, list):
        return set().union(*(references(item) for item in node)) if node else set()
    if not isinstance(node, dict):
        return set()
    names = set().union(*(references(value) for value in node.values())) if node else set()
    if isinstance(node.get("$ref"), str):
        names.add(node["$ref"].removeprefix(PREFIX))
    return names


def components_of_kinds(components: dict[str, Any]) -> list[str]:
    """Return the names of the components of the kinds in `KINDS`."""
    return [
        name
        for name, schema in components.items()
        for gvk in schema.get("x-kubernetes-group-version-kind") or []
        if gvk["kind"] in KINDS.get((gvk["group"], gvk["version"]), "").split()
    ]


def kubernetes(release: str, module: Path) -> None:
    """Write `kubernetes-<release>.json.gz`: the kinds in `KINDS` and every schema they refer to."""
    components: dict[str, Any] = {}
    for document in DOCUMENTS:
        path = module / "api" / "openapi-spec" / "v3" / f"{document}_openapi.json"
        if path.exists():
            components |= json.loads(path.read_text())["components"]["schemas"]
    components = {name: without_descriptions(schema) for name, schema in components.items()}
    kept: dict[str, Any] = {}
    to_visit = components_of_kinds(components)
    while to_visit:
        name = to_visit.pop()
        if name not in kept:
            kept[name] = components[name]
            to_visit += references(components[name])
    write(f"kubernetes-{release}", {"release": release, "components": dict(sorted(kept.items()))})


def crds(name: str, paths: list[Path]) -> None:
    """Write `<name>.json.gz`: a list of CustomResourceDefinitions."""
    import yaml  # noqa: PLC0415 - only this script reads YAML

    write(name, [without_descriptions(yaml.safe_load(path.read_text())) for path in paths])


def write(name: str, data: Any) -> None:
    """Write compact JSON with gzip; the same data gives the same bytes."""
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), compresslevel=9, mtime=0)
    (HERE / f"{name}.json.gz").write_bytes(packed)
    print(f"{name}: {len(packed)} bytes")


if __name__ == "__main__":
    command, name, *paths = sys.argv[1:]
    if command == "kubernetes":
        kubernetes(name, Path(paths[0]))
    else:
        crds(name, [Path(path) for path in paths])

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
import re
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent

KINDS = {
    *("Namespace", "Node", "Pod", "Event", "ConfigMap", "Secret", "Service", "ServiceAccount", "Binding"),
    *("Job", "Lease", "PriorityClass", "Workload", "PodGroup", "CompositePodGroup"),
    *("CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    *("SelfSubjectAccessReview", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
}
"""The kinds to keep."""


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


def kubernetes(release: str, module: Path) -> None:
    """Write `kubernetes-<release>.json.gz`: the kinds in `KINDS` and every schema they refer to."""
    components: dict[str, Any] = {}
    for path in (module / "api" / "openapi-spec" / "v3").glob("api*_openapi.json"):
        components |= without_descriptions(json.loads(path.read_text())["components"]["schemas"])
    kept: dict[str, Any] = {}
    to_visit = [
        name
        for name, schema in components.items()
        for identity in schema.get("x-kubernetes-group-version-kind") or []
        if identity["kind"] in KINDS
    ]
    while to_visit:
        name = to_visit.pop()
        if name not in kept:
            kept[name] = components[name]
            to_visit += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(components[name]))
    write(f"kubernetes-{release}", {"release": release, "components": dict(sorted(kept.items()))})


def crds(name: str, paths: list[Path]) -> None:
    """Write `<name>.json.gz`: a list of CustomResourceDefinitions."""
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

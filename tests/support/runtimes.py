"""Builder of the ClusterTrainingRuntime `mpi`, as the API server stores it."""

from __future__ import annotations

from typing import Any

from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.plans.mark_runtime import COMPONENT
from muster.policy.sources.source import ANNOTATION
from tests.support.builders import Object

REF = ObjectRef("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "", "mpi", "runtime-uid")


def a_runtime(policy: str | None, *, labels: Any = None, spec: Any = None, pods: Any = None) -> Object:
    """Return a runtime of `node` (whose pods have `labels` and the fields `pods`), and then `launcher`."""
    node: Object = {"spec": {"containers": [], **(pods or {})}}
    if labels:
        node["metadata"] = {"labels": labels}
    launcher = {
        "name": "launcher",
        "dependsOn": [{"name": "node", "status": "Ready"}],
        "template": {
            "metadata": {"labels": {group_labels.ANCESTOR: "trainer"}},
            "spec": {"template": {"spec": {"containers": []}}},
        },
    }
    entries = [{"name": "node", "template": {"spec": {"template": node}}}, launcher]
    body: Object = {
        "apiVersion": REF.api_version,
        "kind": REF.kind,
        "metadata": {"name": REF.name, "uid": REF.uid, "resourceVersion": "7"},
        "spec": {"template": {"spec": {"replicatedJobs": entries}}, **(spec or {})},
    }
    if policy is not None:
        body["metadata"]["annotations"] = {ANNOTATION: policy}
    return body


_POD = "f:spec f:template f:spec f:replicatedJobs {entry} f:template f:spec f:template"


def ours(body: Object, *fields: str) -> Object:
    """Make mark_runtime the field manager of these fields of `node`'s pod template; return the object."""
    entry = 'k:{"name":"node"}'
    tree: Object = {}
    for name in fields:
        level = tree
        parent = "f:spec" if name == "schedulerName" else "f:metadata f:labels"
        for key in (*_POD.format(entry=entry).split(), *parent.split(), f"f:{name}"):
            level = level.setdefault(key, {})
    record = {"manager": COMPONENT, "operation": "Update", "fieldsV1": tree}
    body["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {}}, record]
    return body

"""Defaulting: set the fields that a request left out.

Sources (v1.37.1): `pkg/apis/core/v1/defaults.go`, `pkg/apis/batch/v1/defaults.go`,
`pkg/apis/scheduling/{v1beta1,v1alpha3}/defaults.go`. The defaults of custom resources come from their schema.
Every function changes its argument in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muster.simulator.apiserver.fields.decoding import with_defaults
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, copied


def fill(kind: Kind, obj: Object, gates: Gates) -> None:
    """Set the defaults of an object."""
    if kind.custom:
        metadata = obj["metadata"]
        obj.update(with_defaults(obj, kind.schema))
        obj["metadata"] = metadata
        return
    set_defaults = SETTERS.get(kind.kind)
    if set_defaults is not None:
        set_defaults(obj, gates)


def pod_spec(spec: Object) -> None:
    """Set the defaults of a PodSpec, of a Pod or of a template."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        _container(container)
    for volume in spec.get("volumes") or []:
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}


def _container(container: Object) -> None:
    tag = container.get("image", "").rpartition("/")[2]
    is_latest = "@" not in tag and (":" not in tag or tag.endswith(":latest"))
    container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or []:
        reference = at(variable, "valueFrom", "fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")


def _pod(pod: Object, _gates: Gates) -> None:
    spec = pod.setdefault("spec", {})
    spec.setdefault("enableServiceLinks", True)
    pod_spec(spec)
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        limits = at(container, "resources", "limits")
        if limits:
            container["resources"]["requests"] = limits | (container["resources"].get("requests") or {})
    _condition_times(pod.setdefault("status", {}))


def _condition_times(status: Object) -> None:
    """Set two fields that Go encodes even if unset: they have no omitempty."""
    for condition in status.get("conditions") or []:
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def _job(job: Object, _gates: Gates) -> None:
    spec = job.setdefault("spec", {})
    if "parallelism" not in spec and "completions" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault(
        "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    )
    spec.setdefault("manualSelector", False)
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))
    labels = template["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        # The same dict, as the same map in Go: labels that creation adds to the template appear here too.
        job["metadata"]["labels"] = labels
    _condition_times(job.setdefault("status", {}))


def _group(group: Object, gates: Gates) -> None:
    spec = group.setdefault("spec", {})
    spec.setdefault("schedulingPolicy", {})
    if group["apiVersion"].endswith("v1alpha2"):
        spec.setdefault("podGroupTemplateRef", None)
        spec.setdefault("disruptionMode", "Pod")
    else:
        spec.setdefault("disruptionMode", {"single": {}})
        if gates.pod_group_preemption_policy:
            spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    group.setdefault("status", {})


def _workload(workload: Object, _gates: Gates) -> None:
    """Set fields that are encoded as null if unset: they have no omitempty in Go."""
    spec = workload.setdefault("spec", {})
    _templates(spec)
    spec.setdefault("podGroupTemplates", None)


def _templates(parent: Object) -> None:
    for template in parent.get("podGroupTemplates") or []:
        template.setdefault("schedulingPolicy", {})
        template.setdefault("schedulingConstraints", None)
    for template in parent.get("compositePodGroupTemplates") or []:
        template.setdefault("schedulingPolicy", {})
        _templates(template)


def _namespace(namespace: Object, _gates: Gates) -> None:
    name = namespace["metadata"].get("name")
    if name:
        labels = namespace["metadata"].get("labels") or {}
        namespace["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}
    namespace.setdefault("spec", {})
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def _node(node: Object, _gates: Gates) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", copied(status["capacity"]))


def _priority_class(priority_class: Object, _gates: Gates) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _event(event: Object, _gates: Gates) -> None:
    """Set the fields that Go encodes even if unset: they have no omitempty."""
    for field in ("eventTime", "firstTimestamp", "lastTimestamp"):
        event.setdefault(field, None)
    for field in ("reportingComponent", "reportingInstance"):
        event.setdefault(field, "")
    event.setdefault("source", {})


def _secret(secret: Object, _gates: Gates) -> None:
    secret.setdefault("type", "Opaque")


def _policy(policy: Object, _gates: Gates) -> None:
    spec = policy.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    constraints = spec.get("matchConstraints")
    if constraints is not None:
        constraints.setdefault("matchPolicy", "Equivalent")
        constraints.setdefault("namespaceSelector", {})
        constraints.setdefault("objectSelector", {})
        for rule in constraints.get("resourceRules") or []:
            rule.setdefault("scope", "*")


def _binding(binding: Object, _gates: Gates) -> None:
    resources = at(binding, "spec", "matchResources")
    if resources is not None:
        resources.setdefault("matchPolicy", "Equivalent")
        resources.setdefault("namespaceSelector", {})
        resources.setdefault("objectSelector", {})


def _definition(definition: Object, _gates: Gates) -> None:
    spec = definition.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", kind + "List")
    spec.setdefault("conversion", {"strategy": "None"})


SETTERS: Mapping[str, Callable[[Object, Gates], None]] = {
    "Pod": _pod,
    "Job": _job,
    "PodGroup": _group,
    "CompositePodGroup": _group,
    "Workload": _workload,
    "Namespace": _namespace,
    "Node": _node,
    "PriorityClass": _priority_class,
    "Secret": _secret,
    "Event": _event,
    "MutatingAdmissionPolicy": _policy,
    "MutatingAdmissionPolicyBinding": _binding,
    "ValidatingAdmissionPolicy": _policy,
    "ValidatingAdmissionPolicyBinding": _binding,
    "CustomResourceDefinition": _definition,
}

"""The columns and cells of the built-in kinds in tables.

Source: `pkg/printers/internalversion/printers.go` (v1.37.1), and for CustomResourceDefinitions
`pkg/registry/customresourcedefinition/tableconvertor` of k8s.io/apiextensions-apiserver, which 1.36 does not
have. The states of init containers, such as `Init:1/2`, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver.handlers.ages import UNKNOWN, between, since
from muster.simulator.apiserver.objects import Object, at, name_of

NONE, UNSET = "<none>", "<unset>"
ROLE_PREFIX = "node-role.kubernetes.io/"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: the heading; kubectl prints it in capitals.
        cell: returns the cell of an object.
        type: an OpenAPI type; `integer` is aligned to the right.
        priority: 1 for columns that kubectl prints with `-o wide` only.
        format: `name` for the column of the name.
    """

    name: str
    cell: Callable[[Object], Any]
    type: str = "string"
    priority: int = 0
    format: str = ""


def _conditions(obj: Object) -> dict[str, Object]:
    return {str(c.get("type")): c for c in at(obj, "status", "conditions") or []}


def _pod_ready(pod: Object) -> str:
    statuses = at(pod, "status", "containerStatuses") or []
    ready = sum(
        1 for status in statuses if status.get("ready") and at(status, "state", "running") is not None
    )
    return f"{ready}/{len(at(pod, 'spec', 'containers') or [])}"


def _pod_status(pod: Object) -> str:
    status = pod.get("status") or {}
    phase = str(status.get("phase") or "")
    reason = str(status.get("reason") or phase)
    if at(_conditions(pod), "PodScheduled", "reason") == "SchedulingGated":
        reason = "SchedulingGated"
    failed, running = "", False
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        ended = state.get("terminated")
        if at(state, "waiting", "reason"):
            reason = state["waiting"]["reason"]
        elif ended is not None:
            code = ended.get("exitCode", 0)
            signal = ended.get("signal")
            reason = ended.get("reason") or (f"Signal:{signal}" if signal else f"ExitCode:{code}")
            failed = reason if code else failed
        running = running or bool(container.get("ready") and state.get("running") is not None)
    if reason == "Completed":
        is_ready = at(_conditions(pod), "Ready", "status") == "True"
        reason = "Running" if running and is_ready else failed or ("NotReady" if running else reason)
    if at(pod, "metadata", "deletionTimestamp") and phase not in {"Succeeded", "Failed"}:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _pod_restarts(pod: Object) -> str:
    statuses = at(pod, "status", "containerStatuses") or []
    restarts = sum(int(status.get("restartCount") or 0) for status in statuses)
    ends = [at(status, "lastState", "terminated", "finishedAt") or "" for status in statuses]
    last = max(ends, default="")
    return f"{restarts} ({since(last)} ago)" if restarts and last else str(restarts)


def _readiness_gates(pod: Object) -> str:
    gates = at(pod, "spec", "readinessGates") or []
    conditions = _conditions(pod)
    held = sum(at(conditions, str(gate.get("conditionType")), "status") == "True" for gate in gates)
    return f"{held}/{len(gates)}" if gates else NONE


def _job_status(job: Object) -> str:
    held = {name for name, c in _conditions(job).items() if c.get("status") == "True"}
    for state in ("Complete", "Failed"):
        if state in held:
            return state
    if at(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next(
        (state for state in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if state in held), "Running"
    )


def _job_completions(job: Object) -> str:
    succeeded = at(job, "status", "succeeded") or 0
    completions, parallelism = at(job, "spec", "completions"), at(job, "spec", "parallelism") or 0
    if completions is not None:
        return f"{succeeded}/{completions}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Object) -> str:
    return between(at(job, "status", "startTime"), at(job, "status", "completionTime"))


def _containers(field: str) -> Callable[[Object], str]:
    def cell(job: Object) -> str:
        containers = at(job, "spec", "template", "spec", "containers") or []
        return ",".join(str(container.get(field) or "") for container in containers)

    return cell


def _equalities(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _job_selector(job: Object) -> str:
    selector = at(job, "spec", "selector") or {}
    parts = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    for each in selector.get("matchExpressions") or []:
        key, values = each["key"], ",".join(sorted(each.get("values") or []))
        operators = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts[key] = operators.get(each["operator"], f"!{key}")
    return ",".join(text for _, text in sorted(parts.items())) or NONE


def _policy(group: Object) -> str:
    return "Gang" if at(group, "spec", "schedulingPolicy", "gang") is not None else "Basic"


def _group_workload(group: Object) -> str:
    older = at(group, "spec", "podGroupTemplateRef", "workload", "workloadName")
    return str(at(group, "spec", "workloadRef", "workloadName") or older or NONE)


def _group_status(group: Object) -> str:
    conditions = _conditions(group)
    if "DisruptionTarget" in conditions:
        return str(conditions["DisruptionTarget"].get("reason", ""))
    placed = conditions.get("PodGroupInitiallyScheduled") or conditions.get("PodGroupScheduled")
    if placed is None:
        return "Pending"
    return "Scheduled" if placed.get("status") == "True" else "Unschedulable"


def _node_status(node: Object) -> str:
    ready = _conditions(node).get("Ready")
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return status + (",SchedulingDisabled" if at(node, "spec", "unschedulable") else "")


def _node_roles(node: Object) -> str:
    labels = at(node, "metadata", "labels") or {}
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> Callable[[Object], str]:
    def cell(node: Object) -> str:
        addresses = at(node, "status", "addresses") or []
        return next((str(a.get("address")) for a in addresses if a.get("type") == kind), NONE)

    return cell


def _kernel(node: Object) -> str:
    architecture = at(node, "status", "nodeInfo", "architecture")
    kernel = at(node, "status", "nodeInfo", "kernelVersion") or UNKNOWN
    return f"{kernel} ({architecture})" if architecture else str(kernel)


def _first_seen(event: Object) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"))


def _last_seen(event: Object) -> str:
    if event.get("series"):
        return since(at(event, "series", "lastObservedTime"))
    return since(event["lastTimestamp"]) if event.get("lastTimestamp") else _first_seen(event)


def _event_object(event: Object) -> str:
    kind, name = (at(event, "involvedObject", key) or "" for key in ("kind", "name"))
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _event_source(event: Object) -> str:
    component = at(event, "source", "component") or event.get("reportingComponent") or ""
    instance = at(event, "source", "host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


def _event_count(event: Object) -> int:
    return int(at(event, "series", "count") or event.get("count") or 1)


def _external_ip(service: Object) -> str:
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = [
        str(each.get("ip") or each.get("hostname") or "")
        for each in at(service, "status", "loadBalancer", "ingress") or []
        if spec.get("type") == "LoadBalancer"
    ]
    listed = ",".join(addresses + (spec.get("externalIPs") or []))
    return listed or ("<pending>" if spec.get("type") == "LoadBalancer" else NONE)


def _ports(service: Object) -> str:
    pieces = [
        f"{port['port']}:{port['nodePort']}/{port['protocol']}"
        if port.get("nodePort")
        else f"{port['port']}/{port['protocol']}"
        for port in at(service, "spec", "ports") or []
    ]
    return ",".join(pieces) or NONE


def _param_kind(policy: Object) -> str:
    kind = at(policy, "spec", "paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_ref(binding: Object) -> str:
    name = at(binding, "spec", "paramRef", "name")
    return f"{at(binding, 'spec', 'paramRef', 'namespace') or '*'}/{name}" if name else UNSET


def _served_versions(definition: Object) -> str:
    versions = [version for version in at(definition, "spec", "versions") or () if version.get("served")]
    return ",".join(sorted(v["name"] + ("(storage)" if v.get("storage") else "") for v in versions))


def _of(*path: str | int, empty: str = "") -> Callable[[Object], Any]:
    """Return a function that reads a field, or returns `empty` if it is unset."""
    return lambda obj: at(obj, *path) or empty


def _count(*path: str) -> Callable[[Object], int]:
    return lambda obj: len(at(obj, *path) or ())


NAME = Column("Name", name_of, format="name")
AGE = Column("Age", lambda obj: since(at(obj, "metadata", "creationTimestamp")))


def _policy_columns(kind: str, field: str) -> tuple[Column, ...]:
    return NAME, Column(kind, _count("spec", field), "integer"), Column("ParamKind", _param_kind), AGE


_BINDING = (NAME, Column("PolicyName", _of("spec", "policyName")), Column("ParamRef", _param_ref), AGE)
_NODE_INFO = ("status", "nodeInfo")

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "Pod": (
        NAME,
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        AGE,
        Column("IP", _of("status", "podIPs", 0, "ip", empty=NONE), priority=1),
        Column("Node", _of("spec", "nodeName", empty=NONE), priority=1),
        Column("Nominated Node", _of("status", "nominatedNodeName", empty=NONE), priority=1),
        Column("Readiness Gates", _readiness_gates, priority=1),
    ),
    "Job": (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        AGE,
        Column("Containers", _containers("name"), priority=1),
        Column("Images", _containers("image"), priority=1),
        Column("Selector", _job_selector, priority=1),
    ),
    "PodGroup": (
        NAME,
        Column("Policy", _policy),
        Column("Workload", _group_workload),
        Column("Status", _group_status),
        AGE,
    ),
    "CompositePodGroup": (NAME, Column("Policy", _policy), Column("Workload", _group_workload), AGE),
    "Node": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", _of(*_NODE_INFO, "kubeletVersion")),
        Column("Internal-IP", _address("InternalIP"), priority=1),
        Column("External-IP", _address("ExternalIP"), priority=1),
        Column("OS-Image", _of(*_NODE_INFO, "osImage", empty=UNKNOWN), priority=1),
        Column("Kernel-Version", _kernel, priority=1),
        Column("Container-Runtime", _of(*_NODE_INFO, "containerRuntimeVersion", empty=UNKNOWN), priority=1),
    ),
    "Event": (
        Column("Last Seen", _last_seen),
        Column("Type", _of("type")),
        Column("Reason", _of("reason")),
        Column("Object", _event_object),
        Column("Subobject", _of("involvedObject", "fieldPath"), priority=1),
        Column("Source", _event_source, priority=1),
        Column("Message", lambda event: str(event.get("message") or "").strip()),
        Column("First Seen", _first_seen, priority=1),
        Column("Count", _event_count, priority=1),
        Column("Name", name_of, priority=1, format="name"),
    ),
    "Namespace": (NAME, Column("Status", _of("status", "phase")), AGE),
    "ConfigMap": (
        NAME,
        Column("Data", lambda obj: len(obj.get("data") or {}) + len(obj.get("binaryData") or {})),
        AGE,
    ),
    "Secret": (NAME, Column("Type", _of("type")), Column("Data", _count("data")), AGE),
    "ServiceAccount": (NAME, AGE),
    "Service": (
        NAME,
        Column("Type", _of("spec", "type")),
        Column("Cluster-IP", _of("spec", "clusterIP", empty=NONE)),
        Column("External-IP", _external_ip),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda obj: _equalities(at(obj, "spec", "selector")), priority=1),
    ),
    "Lease": (NAME, Column("Holder", _of("spec", "holderIdentity")), AGE),
    "PriorityClass": (
        NAME,
        Column("Value", lambda obj: obj.get("value", 0), "integer"),
        Column("Global-Default", lambda obj: bool(obj.get("globalDefault")), "boolean"),
        AGE,
        Column("PreemptionPolicy", _of("preemptionPolicy")),
    ),
    "MutatingAdmissionPolicy": _policy_columns("Mutations", "mutations"),
    "MutatingAdmissionPolicyBinding": _BINDING,
    "ValidatingAdmissionPolicy": _policy_columns("Validations", "validations"),
    "ValidatingAdmissionPolicyBinding": _BINDING,
    "CustomResourceDefinition": (
        NAME,
        Column("Scope", _of("spec", "scope")),
        Column("Versions", _served_versions),
        Column("Created At", _of("metadata", "creationTimestamp"), "date"),
        Column("Group", _of("spec", "group"), priority=1),
        Column("Kind", _of("spec", "names", "kind"), priority=1),
        Column("ShortNames", lambda obj: ",".join(at(obj, "spec", "names", "shortNames") or ()), priority=1),
        Column(
            "Established",
            lambda obj: at(_conditions(obj), "Established", "status") == "True",
            "boolean",
            priority=1,
        ),
    ),
}
"""The columns of each kind; kinds that are missing have Name and Age."""

"""Admission of objects after defaulting and before validation: priorities, finalizers, policies.

Sources (v1.37.1): `plugin/pkg/admission/{priority,namespace/lifecycle,scheduling/podgroupprotection}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.simulator.apiserver.kinds import SCHEDULING, Gates, Kind
from muster.simulator.apiserver.objects import Object, at, by_name, name_of, namespace_of, uid_of
from muster.simulator.apiserver.refusals import not_found, refused
from muster.simulator.apiserver.store import Store

FINALIZER = "scheduling.k8s.io/podgroup-protection"

ADMISSION = "admissionregistration.k8s.io"
_PLURALS = ("policies", "policybindings")
CLASSES = (SCHEDULING, "priorityclasses")
NAMESPACES = ("", "namespaces")
POD_GROUPS = (SCHEDULING, "podgroups")


def admit_new(store: Store, kind: Kind, obj: Object, gates: Gates, user: str) -> None:
    """Change a new object as the admission plugins do; it is a fresh copy."""
    _in_live_namespace(store, kind, obj)
    if not kind.custom:
        _run_plugins(store, kind, obj, gates)
    _run_policies(store, kind, obj, gates, user)


def _run_plugins(store: Store, kind: Kind, obj: Object, gates: Gates) -> None:
    of_group = kind.kind in {"PodGroup", "CompositePodGroup"} and kind.version != "v1alpha2"
    if kind.kind == "Pod" or (of_group and gates.generic_workload):
        _set_priority(store, kind, obj, gates)
    if kind.kind == "Pod":
        _default_tolerations(obj)
    elif kind.kind == "PodGroup" and gates.generic_workload:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        if kind.version == "v1alpha2":
            _template_exists(store, obj)


def validate(
    store: Store,
    kind: Kind,
    new: Object | None,
    old: Object | None,
    user: str,
    subresource: str = "",
    options: Mapping[str, str] | None = None,
) -> None:
    """Judge a write by the ValidatingAdmissionPolicies in the server, after all other rules."""
    policies, bindings = (_objects(store, f"validatingadmission{plural}") for plural in _PLURALS)
    if not policies or kind.group == ADMISSION:
        return
    from muster.simulator.apiserver.admission import policies as judges  # noqa: PLC0415 - 25 ms and 11 MB of CEL

    operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    home = _home(store, kind, new or old or {})
    attributes = judges.Attributes(kind, home, operation, subresource, user, options or {})
    judges.check(new, old, attributes, policies, bindings)


def _run_policies(store: Store, kind: Kind, obj: Object, gates: Gates, user: str) -> None:
    """Change an object as the MutatingAdmissionPolicies in the server do."""
    policies, bindings = (_objects(store, f"mutatingadmission{plural}") for plural in _PLURALS)
    if not policies:
        return
    from muster.simulator.apiserver.admission import policies as judges  # noqa: PLC0415 - 25 ms and 11 MB of CEL

    creation = judges.Attributes(kind, _home(store, kind, obj), user=user, gates=gates)
    changed = judges.mutated(obj, creation, policies, bindings)
    if changed is not obj:
        obj.clear()
        obj.update(changed)


def _objects(store: Store, plural: str) -> list[Object]:
    return [record.obj for record in store.all((ADMISSION, plural))]


def _home(store: Store, kind: Kind, obj: Object) -> Object | None:
    home = store.get(NAMESPACES, ("", namespace_of(obj))) if kind.namespaced else None
    return home.obj if home else None


def admit_changed(kind: Kind, obj: Object, old: Object) -> None:
    """Change an update as the admission plugins do: a Pod keeps its priority when the writer left it out."""
    if kind.kind == "Pod" and not kind.custom:
        for field in ("priority", "preemptionPolicy"):
            if field in old["spec"]:
                obj["spec"].setdefault(field, old["spec"][field])
        _default_tolerations(obj)


def keep_gang_sizes(store: Store, kind: Kind, obj: Object, old: Object, gates: Gates) -> None:
    """Judge an update as 1.36 alone does: a Job of a gang keeps its parallelism.

    A validating plugin, so it comes after the kind's own rules (`plugin/pkg/admission/job`, v1.36.3).
    """
    if kind.kind != "Job" or kind.custom or not gates.generic_workload:
        return
    if at(obj, "spec", "parallelism") == at(old, "spec", "parallelism"):
        return
    for group in _groups_of(store, old):
        if at(group, "spec", "schedulingPolicy", "gang") is not None:
            why = "cannot change parallelism for a Job referencing gang-scheduled PodGroup"
            raise refused(kind.group, kind.plural, name_of(old), f'{why} "{name_of(group)}"')


def _groups_of(store: Store, job: Object) -> Iterator[Object]:
    """Yield the PodGroup that a Job's template names; where it names none, those that the Job controls."""
    named = at(job, "spec", "template", "spec", "schedulingGroup", "podGroupName")
    for record in store.all(POD_GROUPS):
        group = record.obj
        if namespace_of(group) != namespace_of(job):
            continue
        owners = group["metadata"].get("ownerReferences") or []
        controls = any(owner.get("controller") and owner["uid"] == uid_of(job) for owner in owners)
        if name_of(group) == named if named else controls:
            yield group


def _in_live_namespace(store: Store, kind: Kind, obj: Object) -> None:
    if not kind.namespaced:
        return
    name = namespace_of(obj)
    record = store.get(NAMESPACES, ("", name))
    if record is None:
        raise not_found("", "namespaces", name)
    if record.obj["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {name} because it is being terminated"
        message = f"namespace {name} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        raise refused(kind.group, kind.plural, name_of(obj), why, [cause])


def _set_priority(store: Store, kind: Kind, obj: Object, gates: Gates) -> None:
    spec = obj["spec"]
    chosen = _priority_class(store, kind, obj)
    computed = int(chosen.get("value", 0)) if chosen else 0
    spec_fields = {"priority": computed}
    if kind.kind == "Pod" or gates.pod_group_preemption_policy:
        spec_fields["preemptionPolicy"] = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    for field, value in spec_fields.items():
        given = spec.get(field)
        if given is not None and given != value:
            why = f"{field} {given} differs from {value}, which was computed from the PriorityClass"
            raise refused(kind.group, kind.plural, name_of(obj), why)
        spec[field] = value
    if chosen:
        spec["priorityClassName"] = name_of(chosen)


def _priority_class(store: Store, kind: Kind, obj: Object) -> Object | None:
    wanted = obj["spec"].get("priorityClassName")
    if wanted:
        record = store.get(CLASSES, ("", wanted))
        if record is None:
            why = f"no PriorityClass with name {wanted} was found"
            raise refused(kind.group, kind.plural, name_of(obj), why)
        return record.obj
    defaults = [record.obj for record in store.all(CLASSES) if record.obj.get("globalDefault")]
    return min(defaults, key=lambda found: int(found.get("value", 0)), default=None)


def _template_exists(store: Store, group: Object) -> None:
    """Refuse a PodGroup whose template is not there; 1.36 alone does (`plugin/pkg/admission/podgroup`)."""
    reference = at(group, "spec", "podGroupTemplateRef", "workload")
    if reference is None or not reference.get("podGroupTemplateName"):
        return
    wanted, template = reference.get("workloadName"), reference["podGroupTemplateName"]
    record = store.get((SCHEDULING, "workloads"), (namespace_of(group), wanted))
    why = ""
    if record is None:
        why = f'Workload "{wanted}" not found'
    elif record.obj["metadata"].get("deletionTimestamp"):
        why = f'Workload "{wanted}" is being deleted'
    elif template not in by_name(record.obj["spec"].get("podGroupTemplates")):
        why = f'PodGroupTemplate "{template}" not found in Workload "{wanted}"'
    if why:
        raise refused(SCHEDULING, "podgroups", name_of(group), f"PodGroup rejected: {why}")


def _default_tolerations(pod: Object) -> None:
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("effect") in {None, "NoExecute"} and t.get("key") in {key, None} for t in tolerations
        ):
            seconds = {"effect": "NoExecute", "tolerationSeconds": 300}
            tolerations.append({"key": key, "operator": "Exists", **seconds})

"""Validation of Jobs: counts, selector, template, immutable fields and status.

Source (v1.37.1): `pkg/apis/batch/validation/validation.go`, `pkg/registry/batch/job/strategy.go` and
`pkg/apis/batch/v1/zz_generated.validations.go`. Pod failure and success policies are not validated.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, at, copied, name_of, uid_of
from muster.simulator.apiserver.selectors import selects
from muster.simulator.apiserver.status import OMITTED, FieldError, immutable, invalid, not_supported, required
from muster.simulator.apiserver.validation import names
from muster.simulator.apiserver.validation.groups import (
    BASIC_OR_GANG,
    CLAIM,
    CONSTRAINTS,
    DISRUPTION,
    MAX_CLAIMS,
)
from muster.simulator.apiserver.validation.pod import check_spec
from muster.simulator.apiserver.validation.rules import (
    Field,
    Struct,
    at_least,
    check,
    immutable_value,
    max_items,
    not_set_later,
    optional,
    unique,
)

MAX_PARALLELISM_INDEXED = 100_000
COUNT_FIELDS = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
    *("backoffLimitPerIndex", "maxFailedIndexes"),
)
IMMUTABLE_FIELDS = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)

_GANG = Struct({"minCount": Field((optional, at_least(1)))})
_POLICY = Struct({"basic": Field((optional,)), "gang": Field((optional,), lambda: _GANG)}, (BASIC_OR_GANG,))
_SCHEDULING = Struct(
    {
        "schedulingPolicy": Field((not_set_later, optional), lambda: _POLICY),
        "schedulingConstraints": Field((immutable_value, optional), lambda: CONSTRAINTS),
        "disruptionMode": Field((immutable_value, optional), lambda: DISRUPTION),
        "resourceClaims": Field(
            (immutable_value, max_items(MAX_CLAIMS), optional, unique("name")), lambda: CLAIM, key="name"
        ),
    }
)
_SPEC = Struct({"scheduling": Field((not_set_later, optional), lambda: _SCHEDULING)})


def check_new(job: Object) -> list[FieldError]:
    """Return the errors of a new Job."""
    spec = job.get("spec") or {}
    return (
        _generated_labels(job)
        + _spec(spec)
        + _selector(spec)
        + _hostnames(job)
        + check(_SPEC, spec, None, "spec")
    )


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Job."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _spec(spec) + _selector(spec) + _completions(spec, old_spec)
    if spec.get("selector") != old_spec.get("selector"):
        errors.append(immutable("spec.selector", spec.get("selector")))
    errors += _template(spec, old)
    errors += [
        immutable(f"spec.{f}", spec.get(f)) for f in IMMUTABLE_FIELDS if spec.get(f) != old_spec.get(f)
    ]
    return errors + _policy_variant(spec, old_spec) + _hostnames(new) + check(_SPEC, spec, old_spec, "spec")


def _generated_labels(job: Object) -> list[FieldError]:
    spec, labels = job.get("spec") or {}, at(job, "spec", "template", "metadata", "labels") or {}
    if spec.get("manualSelector"):
        return []
    expected = {
        "batch.kubernetes.io/controller-uid": uid_of(job),
        "controller-uid": uid_of(job),
        "batch.kubernetes.io/job-name": name_of(job),
        "job-name": name_of(job),
    }
    path = "spec.template.metadata.labels"
    return [
        invalid(f"{path}[{key}]", labels, f"must be '{value}'")
        if key in labels
        else required(f"{path}[{key}]", f"must be '{value}'")
        for key, value in expected.items()
        if labels.get(key) != value
    ]


def _spec(spec: Object) -> list[FieldError]:
    errors = [
        invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in COUNT_FIELDS
        if (spec.get(field) or 0) < 0
    ]
    if spec.get("managedBy") is not None and "/" not in str(spec["managedBy"]):
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid("spec.managedBy", spec["managedBy"], detail))
    errors += _mode(spec)
    policy = spec.get("podReplacementPolicy")
    supported = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if policy is not None and policy not in supported:
        errors.append(not_supported("spec.podReplacementPolicy", policy, supported))
    errors += _min_count(spec) + _disruption_mode(spec)
    pod_spec = at(spec, "template", "spec") or {}
    errors += check_spec(pod_spec, "spec.template.spec")
    return errors + _restart_policy(spec, pod_spec)


def _mode(spec: Object) -> list[FieldError]:
    mode, completions = spec.get("completionMode"), spec.get("completions")
    errors: list[FieldError] = []
    if mode not in {"NonIndexed", "Indexed", None}:
        errors.append(not_supported("spec.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        if completions is None:
            errors.append(required("spec.completions", "when completion mode is Indexed"))
        parallelism = spec.get("parallelism") or 0
        if parallelism > MAX_PARALLELISM_INDEXED:
            limit = f"must be less than or equal to {MAX_PARALLELISM_INDEXED} when completion mode is Indexed"
            errors.append(invalid("spec.parallelism", parallelism, limit))
        failed = spec.get("maxFailedIndexes")
        if failed is not None and completions is not None and failed > completions:
            errors.append(
                invalid("spec.maxFailedIndexes", failed, "must be less than or equal to completions")
            )
        return errors
    return errors + [
        invalid(f"spec.{field}", spec[field], "requires indexed completion mode")
        for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
        if spec.get(field) is not None
    ]


def _min_count(spec: Object) -> list[FieldError]:
    count = at(spec, "scheduling", "schedulingPolicy", "gang", "minCount")
    parallelism = spec.get("parallelism", 1)
    if count is None or count <= parallelism:
        return []
    path = "spec.scheduling.schedulingPolicy.gang.minCount"
    return [invalid(path, count, f"must not be greater than parallelism ({parallelism})")]


def _disruption_mode(spec: Object) -> list[FieldError]:
    scheduling = spec.get("scheduling")
    if scheduling is None or at(scheduling, "disruptionMode", "all") is None:
        return []
    if at(scheduling, "schedulingPolicy", "gang") is not None:
        return []
    detail = "the disruptionMode `all` is not supported with the Basic scheduling policy"
    return [invalid("spec.scheduling.disruptionMode", OMITTED, detail)]


def _policy_variant(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = at(spec, "scheduling", "schedulingPolicy"), at(old_spec, "scheduling", "schedulingPolicy")
    if new is None or old is None or (new.get("basic") is None) == (old.get("basic") is None):
        return []
    detail = (
        "the basic/gang policy variant is immutable after creation; "
        "only schedulingPolicy.gang.minCount may be updated"
    )
    return [invalid("spec.scheduling.schedulingPolicy", None, detail)]


def _restart_policy(spec: Object, pod_spec: Object) -> list[FieldError]:
    path, policy = "spec.template.spec.restartPolicy", pod_spec.get("restartPolicy")
    if policy in {None, "Always"}:
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in {"OnFailure", "Never"}:
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _selector(spec: Object) -> list[FieldError]:
    if spec.get("selector") is None:
        return [required("spec.selector")]
    labels = at(spec, "template", "metadata", "labels")
    if selects(spec["selector"], labels or {}):
        return []
    return [invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")]


def _hostnames(job: Object) -> list[FieldError]:
    spec = job.get("spec") or {}
    if spec.get("completionMode") != "Indexed" or not spec.get("completions"):
        return []
    longest = f"{name_of(job)}-{spec['completions'] - 1}"
    if not names.dns_label(longest):
        return []
    return [
        invalid(
            "metadata.name", name_of(job), f"will not able to create pod with invalid DNS label: {longest}"
        )
    ]


def _completions(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = spec.get("completions"), old_spec.get("completions")
    if new == old:
        return []
    if spec.get("completionMode") != "Indexed":
        return [immutable("spec.completions", new)]
    if new is None or new == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")]


def _template(spec: Object, old: Object) -> list[FieldError]:
    """Check that the template is unchanged, but for scheduling directives of a suspended, inactive Job."""
    template, old_template = spec.get("template") or {}, at(old, "spec", "template") or {}
    if not _template_mutable(old):
        return [] if template == old_template else [immutable("spec.template", template)]
    allowed = copied(old_template)
    _copy_fields(allowed, template, "metadata", ("labels", "annotations"))
    _copy_fields(allowed, template, "spec", ("nodeSelector", "tolerations", "schedulingGates"))
    _copy_node_affinity(allowed["spec"], template.get("spec") or {})
    for field in ("containers", "initContainers"):
        containers = at(template, "spec", field) or []
        allowed_containers = allowed["spec"].get(field) or []
        for allowed_container, container in zip(allowed_containers, containers, strict=False):
            if allowed_container.get("name") == container.get("name"):
                _copy_field(allowed_container, container, "resources")
    unchanged = allowed.get("spec") == template.get("spec")
    return [] if unchanged else [immutable("spec.template.spec", template.get("spec"))]


def _template_mutable(old: Object) -> bool:
    status = old.get("status") or {}
    suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    started = status.get("startTime") is not None
    return bool(at(old, "spec", "suspend")) and (not started or suspended) and not status.get("active")


def _copy_fields(target_object: Object, source: Object, section: str, fields: tuple[str, ...]) -> None:
    target = target_object.setdefault(section, {})
    for field in fields:
        _copy_field(target, source.get(section) or {}, field)


def _copy_field(target: Object, source: Object, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _copy_node_affinity(target: Object, source: Object) -> None:
    source_affinity: Any = source.get("affinity")
    affinity = dict(target.get("affinity") or {})
    _copy_field(affinity, source_affinity or {}, "nodeAffinity")
    if affinity or source_affinity is not None:
        target["affinity"] = affinity
    else:
        target.pop("affinity", None)


TERMINAL_CONDITIONS = ("Failed", "Complete", "FailureTarget")


def check_status(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated status of a Job; terminal conditions stay true."""
    status, old_status = new.get("status") or {}, old.get("status") or {}
    errors = _finished(status, old_status) + [
        invalid("status.conditions", OMITTED, f"cannot disable the terminal {kind}=True condition")
        for kind in TERMINAL_CONDITIONS
        if _is_true(old_status, kind) and not _is_true(status, kind)
    ]
    if status.get("failed", 0) < old_status.get("failed", 0):
        errors.append(invalid("status.failed", status.get("failed", 0), "cannot decrease the failed counter"))
    if _is_true(old_status, "SuccessCriteriaMet") and not _is_true(status, "SuccessCriteriaMet"):
        detail = "cannot disable the SuccessCriteriaMet=True condition"
        errors.append(invalid("status.conditions", OMITTED, detail))
    return errors


def _finished(status: Object, old_status: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    completed = _is_true(status, "Complete") and not _is_true(old_status, "Complete")
    failed = _is_true(status, "Failed") and not _is_true(old_status, "Failed")
    if status.get("completionTime") and not _is_true(status, "Complete"):
        detail = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid("status.completionTime", status["completionTime"], detail))
    if completed and not status.get("completionTime"):
        errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    for finished, kind, precondition in (
        (failed, "Failed", "FailureTarget"),
        (completed, "Complete", "SuccessCriteriaMet"),
    ):
        if finished and not _is_true(status, precondition):
            detail = f"cannot set {kind}=True condition without the {precondition}=true condition"
            errors.append(invalid("status.conditions", OMITTED, detail))
    if completed or failed:
        if status.get("active"):
            errors.append(invalid("status.active", status["active"], "active>0 is invalid for finished job"))
        if not status.get("startTime"):
            errors.append(required("status.startTime", "startTime is required for finished job"))
    return errors


def _is_true(status: Object, condition_type: str) -> bool:
    return any(
        condition.get("type") == condition_type and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )

"""Validation of Jobs: counts, selector, template and immutable fields.

Source (v1.37.1): `pkg/apis/batch/validation/validation.go`, `pkg/registry/batch/job/strategy.go` and
`pkg/apis/batch/v1/zz_generated.validations.go`. Policies of failure and success, and the status, are not
validated.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, at, name_of
from muster.simulator.apiserver.refusals import (
    OMITTED,
    FieldError,
    immutable,
    invalid,
    not_supported,
    required,
)
from muster.simulator.apiserver.selectors import selects
from muster.simulator.apiserver.validation import names
from muster.simulator.apiserver.validation.groups import BASIC_OR_GANG, CONSTRAINTS, DISRUPTION
from muster.simulator.apiserver.validation.pod import check_spec
from muster.simulator.apiserver.validation.rules import Field, Struct, check

_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_IMMUTABLE = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")

_GANG = Struct({"minCount": Field(optional=True, least=1)})
_POLICY = Struct({"basic": Field(optional=True), "gang": Field(optional=True, struct=_GANG)}, BASIC_OR_GANG)
_SCHEDULING = Struct(
    {
        "schedulingPolicy": Field(kept=True, optional=True, struct=_POLICY),
        "schedulingConstraints": Field(immutable=True, optional=True, struct=CONSTRAINTS),
        "disruptionMode": Field(immutable=True, optional=True, struct=DISRUPTION),
    }
)
_SPEC = Struct({"scheduling": Field(kept=True, optional=True, struct=_SCHEDULING)})


def check_new(job: Object) -> list[FieldError]:
    """Return the errors of a new Job."""
    spec = job.get("spec") or {}
    return _spec(spec) + _hostnames(job) + check(_SPEC, spec, None, "spec")


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Job."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _spec(spec) + _completions(spec, old_spec)
    errors += _template(spec, old)
    errors += [
        immutable(f"spec.{field}", spec.get(field))
        for field in ("selector", *_IMMUTABLE)
        if spec.get(field) != old_spec.get(field)
    ]
    return errors + _policy_variant(spec, old_spec) + _hostnames(new) + check(_SPEC, spec, old_spec, "spec")


def _spec(spec: Object) -> list[FieldError]:
    errors = [
        invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in _COUNTS
        if (spec.get(field) or 0) < 0
    ]
    mode = spec.get("completionMode")
    if mode not in {"NonIndexed", "Indexed", None}:
        errors.append(not_supported("spec.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed" and spec.get("completions") is None:
        errors.append(required("spec.completions", "when completion mode is Indexed"))
    pod_spec = at(spec, "template", "spec") or {}
    errors += _min_count(spec) + _disruption_mode(spec) + check_spec(pod_spec, "spec.template.spec")
    if pod_spec.get("restartPolicy") == "Always":
        errors.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    labels = at(spec, "template", "metadata", "labels") or {}
    if not selects(spec.get("selector") or {}, labels):
        why = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", labels, why))
    return errors


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
    directives = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    new_spec, old_spec = (
        {
            key: _without_resources(value)
            for key, value in (each.get("spec") or {}).items()
            if key not in directives
        }
        for each in (template, old_template)
    )
    return [] if new_spec == old_spec else [immutable("spec.template.spec", template.get("spec"))]


def _without_resources(value: Any) -> Any:
    if isinstance(value, list):
        return [{**item, "resources": None} if isinstance(item, dict) else item for item in value]
    return value


def _template_mutable(old: Object) -> bool:
    status = old.get("status") or {}
    suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    started = status.get("startTime") is not None
    return bool(at(old, "spec", "suspend")) and (not started or suspended) and not status.get("active")

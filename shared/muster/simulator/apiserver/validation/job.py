"""Validation of Jobs: counts, selector, template and immutable fields.

Source (v1.37.1): `pkg/apis/batch/validation/validation.go` and `pkg/registry/batch/job/strategy.go`. Signs of
counts, policies of failure and success, `spec.scheduling` and the status are not validated.
"""

from __future__ import annotations

from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.refusals import FieldError, immutable, invalid, required
from muster.simulator.apiserver.validation.pod import check_spec

_IMMUTABLE = (
    *("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"),
)


def check_new(job: Object) -> list[FieldError]:
    """Return the errors of a new Job."""
    spec = job["spec"]
    errors: list[FieldError] = []
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        errors.append(required("spec.completions", "when completion mode is Indexed"))
    pod_spec = spec["template"]["spec"]
    errors += check_spec(pod_spec, "spec.template.spec")
    if pod_spec["restartPolicy"] == "Always":
        errors.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return errors


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Job."""
    spec, old_spec = new["spec"], old["spec"]
    changed = [field for field in _IMMUTABLE if spec.get(field) != old_spec.get(field)]
    errors = check_new(new) + _completions(spec, old_spec) + _template(spec, old)
    return errors + [immutable(f"spec.{field}", spec.get(field)) for field in changed]


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
    template, old_template = spec["template"], old["spec"]["template"]
    if not _template_mutable(old):
        return [] if template == old_template else [immutable("spec.template", template)]
    directives = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    new_spec, old_spec = (
        {key: value for key, value in each["spec"].items() if key not in directives}
        for each in (template, old_template)
    )
    return [] if new_spec == old_spec else [immutable("spec.template.spec", template["spec"])]


def _template_mutable(old: Object) -> bool:
    status = old.get("status") or {}
    suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    started = status.get("startTime") is not None
    return bool(at(old, "spec", "suspend")) and (not started or suspended) and not status.get("active")

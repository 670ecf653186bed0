"""CustomResourceDefinitions: what of them is validated, their status, and the kinds they define.

Source: k8s.io/apiextensions-apiserver v0.37.1, `pkg/apis/apiextensions/validation`. Schemas are not
checked to be structural.
"""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of, now
from muster.simulator.apiserver.refusals import FieldError, invalid, not_supported, required
from muster.simulator.apiserver.schemas import Schema


def check_new(obj: Object) -> list[FieldError]:
    """Return the errors of a new CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    errors = [required(f"spec.names.{field}") for field in ("plural", "kind") if not at(spec, "names", field)]
    if name_of(obj) != f"{at(spec, 'names', 'plural')}.{spec.get('group', '')}":
        errors.append(invalid("metadata.name", name_of(obj), 'must be spec.names.plural+"."+spec.group'))
    if spec.get("scope") not in {"Namespaced", "Cluster"}:
        errors.append(not_supported("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced")))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", versions, why))
    return errors


def established(obj: Object) -> Object:
    """Return the status of a definition that is served: NamesAccepted and Established are true."""
    stored = [version["name"] for version in obj["spec"].get("versions") or [] if version.get("storage")]
    messages = {
        "NamesAccepted": ("NoConflicts", "no conflicts found"),
        "Established": ("InitialNamesAccepted", "the initial names have been accepted"),
    }
    conditions = [
        {
            "lastTransitionTime": now(),
            "message": message,
            "reason": reason,
            "status": "True",
            "type": condition,
        }
        for condition, (reason, message) in messages.items()
    ]
    return {"acceptedNames": obj["spec"]["names"], "conditions": conditions, "storedVersions": stored}


def kinds_of(obj: Object, meta: Schema) -> tuple[Kind, ...]:
    """Return the kinds of the served versions of a definition, the stored version first."""
    spec = obj["spec"]
    crd_names = spec["names"]
    kinds = []
    for version in sorted(spec.get("versions") or [], key=lambda v: not v.get("storage")):
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        schema: Schema = dict(at(version, "schema", "openAPIV3Schema") or {})
        schema["properties"] = {**(schema.get("properties") or {}), "metadata": meta}
        kinds.append(
            Kind(
                group=spec["group"],
                version=version["name"],
                plural=crd_names["plural"],
                kind=crd_names["kind"],
                namespaced=spec["scope"] == "Namespaced",
                singular=crd_names.get("singular") or crd_names["kind"].lower(),
                short_names=tuple(crd_names.get("shortNames") or ()),
                categories=tuple(crd_names.get("categories") or ()),
                subresources=frozenset({"status"} & subresources.keys()),
                unconditional=False,
                schema=schema,
                definition=obj,
            )
        )
    return tuple(kinds)

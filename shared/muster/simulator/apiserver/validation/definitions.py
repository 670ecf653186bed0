"""CustomResourceDefinitions: their status, and the kinds they define; they are not validated."""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, now
from muster.simulator.apiserver.schemas import Schema


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

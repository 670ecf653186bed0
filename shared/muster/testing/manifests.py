"""Checks that the manifests of a step fit its code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from muster.cluster.permissions import Permissions
from muster.runtime.step import Step
from muster.runtime.steps import find_step
from muster.simulator.overlays import Manifest, load, of_kind

__tracebackhide__ = True  # pytest shows the test and the message, not the check's source
Rule = tuple[str, str, str, str]
"""Verb, API group, resource with its subresource, and the name of the only object; "" for all."""


def load_step(folder: Path) -> Step:
    """Return the step of a folder with function/step.py.

    Raises:
        LookupError: there is none, or it cannot be loaded.
    """
    return find_step(str(folder))


def check_manifests(folder: Path) -> None:
    """Check the manifests in the kustomization folder of a step.

    Its Service has the step's name with dashes and runs as a ServiceAccount of the folder, a Trigger sends it
    events, and the roles of that account grant exactly the permissions in the step's code.

    Raises:
        AssertionError: something does not fit; the message says what to add or to remove.
        LookupError: the folder has no step, or it cannot be loaded.
    """
    if wrong := list(_wrong(folder)):
        raise AssertionError("\n".join(f"{folder}: {one}" for one in wrong))


def _wrong(folder: Path) -> Iterator[str]:
    """Yield what does not fit."""
    step, objects = load_step(folder), load(folder)
    name = step.name.replace("_", "-")
    services = {service["metadata"]["name"]: service for service in of_kind(objects, "Service")}
    if name not in services:
        yield f"no Service is called {name!r}, as the step is"
        return
    account = services[name]["spec"]["template"]["spec"].get("serviceAccountName", "")
    if account not in {one["metadata"]["name"] for one in of_kind(objects, "ServiceAccount")}:
        yield f"Service {name} runs as {account!r}, which is not a ServiceAccount"
    if name not in map(_subscriber, of_kind(objects, "Trigger")):
        yield f"no Trigger has the subscriber {name!r}"
    granted = {rule for role in _roles_of(account, objects) for rule in rules_of(role)}
    needed = rules_needed(step.all_permissions)
    if needed - granted:
        yield f"the role lacks {_shown(needed - granted)}"
    if granted - needed:
        yield f"no permission of the step needs {_shown(granted - needed)}"


def rules_needed(permissions: Permissions) -> set[Rule]:
    """Return the rules that grant exactly these permissions."""
    return {
        (
            permission.verb,
            permission.resource.group,
            "/".join(filter(None, (permission.resource.plural, permission.subresource))),
            permission.name,
        )
        for permission in permissions
    }


def rules_of(role: Manifest) -> set[Rule]:
    """Return the rules of a Role or ClusterRole, one for each verb and resource."""
    return {
        (verb, group, resource, name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


def _roles_of(account: str, objects: list[Manifest]) -> list[Manifest]:
    bindings = [*of_kind(objects, "ClusterRoleBinding"), *of_kind(objects, "RoleBinding")]
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for binding in bindings
        if any(subject["name"] == account for subject in binding.get("subjects") or [])
    }
    return [role for role in objects if (role["kind"], role["metadata"]["name"]) in bound]


def _subscriber(trigger: Manifest) -> str:
    return str((trigger["spec"]["subscriber"].get("ref") or {}).get("name", ""))


def _shown(rules: Iterable[Rule]) -> str:
    lines = [
        f"{{apiGroups: ['{group}'], resources: [{resource}], verbs: [{verb}]"
        + (f", resourceNames: [{name}]}}" if name else "}")
        for verb, group, resource, name in sorted(rules)
    ]
    return ", ".join(lines)

"""Whatever an overlay names, it installs: no overlay leaves a name behind that leads nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.data import EVENTING
from muster.kustomize import Manifest, load, of_kind

OVERLAYS = sorted(path for path in (EVENTING / "overlays").iterdir() if path.is_dir())
Name = tuple[str, str, str]
"""Kind, namespace and name."""

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))


def named(objects: list[Manifest]) -> set[Name]:
    """All names that something in the overlay refers to, by the fields of its kind."""
    return {name for obj in objects for name in _named_by(obj)}


def there(objects: list[Manifest]) -> set[Name]:
    """All names that the overlay makes."""
    return {_place(obj["kind"], obj["metadata"]) for obj in objects}


@each_overlay
def test_every_named_object_is_installed(overlay: Path) -> None:
    """Services of triggers, their broker, dead letter sinks, accounts, roles and policies of bindings."""
    objects = load(overlay)
    names = named(objects)
    kinds = {kind for kind, _, _ in names}
    assert {"Broker", "Service", "ServiceAccount", "MutatingAdmissionPolicy"} < kinds
    assert kinds & {"Role", "ClusterRole"}
    assert names - there(objects) == set()


@each_overlay
def test_every_installed_object_is_used(overlay: Path) -> None:
    """No service that no trigger feeds, no account that nothing runs as, no role that no account has."""
    objects = load(overlay)
    wanted = {"Broker", "Service", "ServiceAccount", "Role", "ClusterRole", "MutatingAdmissionPolicy"}
    assert {name for name in there(objects) if name[0] in wanted} - named(objects) == set()


@each_overlay
def test_every_account_that_is_given_rights_is_run_as(overlay: Path) -> None:
    """By a function or by the sources of the same overlay, and never by both."""
    objects = load(overlay)
    given = {
        account
        for binding in (*of_kind(objects, "RoleBinding"), *of_kind(objects, "ClusterRoleBinding"))
        for account in _accounts(binding)
    }
    services = {_account(service, _pod(service)) for service in of_kind(objects, "Service")}
    sources = {_account(source, source["spec"]) for source in of_kind(objects, "ApiServerSource")}
    assert given == services | sources
    assert services.isdisjoint(sources)


@pytest.mark.parametrize("kind", ["Service", "ServiceAccount", "Broker", "MutatingAdmissionPolicy"])
def test_a_missing_object_is_seen(kind: str) -> None:
    """The tests above would fail for an overlay that leaves one out."""
    objects = load(OVERLAYS[0])
    left = [obj for obj in objects if obj is not next(iter(of_kind(objects, kind)))]
    assert {lost for lost, _, _ in named(left) - there(left)} == {kind}


def _named_by(manifest: Manifest) -> Iterator[Name]:
    namespace, spec = manifest["metadata"].get("namespace", ""), manifest.get("spec", {})
    match manifest["kind"]:
        case "Trigger":
            yield "Broker", namespace, spec["broker"]
            yield _reference(spec["subscriber"], namespace)
            yield _reference(spec["delivery"]["deadLetterSink"], namespace)
        case "Broker":
            yield _reference(spec["delivery"]["deadLetterSink"], namespace)
        case "PingSource":
            yield _reference(spec["sink"], namespace)
        case "ApiServerSource":
            yield _reference(spec["sink"], namespace)
            yield _account(manifest, spec)
        case "EventPolicy":
            yield from (_reference(guarded, namespace) for guarded in spec["to"])
        case "Service":
            yield _account(manifest, _pod(manifest))
        case "RoleBinding" | "ClusterRoleBinding":
            role = manifest["roleRef"]
            yield role["kind"], namespace if role["kind"] == "Role" else "", role["name"]
            yield from _accounts(manifest)
        case "MutatingAdmissionPolicyBinding":
            yield "MutatingAdmissionPolicy", "", spec["policyName"]


def _accounts(binding: Manifest) -> Iterator[Name]:
    """Its service accounts; a group, as that of all accounts of a namespace, is created by no manifest."""
    for subject in binding["subjects"]:
        if subject["kind"] == "ServiceAccount":
            yield _place("ServiceAccount", subject)


def _reference(destination: dict[str, Any], namespace: str) -> Name:
    ref = destination["ref"]
    return ref["kind"], ref.get("namespace", namespace), ref["name"]


def _account(manifest: Manifest, spec: dict[str, Any]) -> Name:
    return "ServiceAccount", manifest["metadata"].get("namespace", ""), spec["serviceAccountName"]


def _pod(service: Manifest) -> dict[str, Any]:
    pod: dict[str, Any] = service["spec"]["template"]["spec"]
    return pod


def _place(kind: str, metadata: dict[str, Any]) -> Name:
    return kind, metadata.get("namespace", ""), metadata["name"]

"""Whether Muster is installed in a cluster: its admission policies, Triggers and Services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.cli.check import KNATIVE_SERVICES, TRIGGERS
from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import POLICY_NAMESPACE, Cluster, Objects
from muster.objects.resources import MUTATING_ADMISSION_POLICIES, Resource
from muster.policy.group_labels import MUSTER
from muster.runtime import steps

_POLICIES = ("muster-mark-jobs", "muster-mark-jobsets", "muster-stamp-pods")
"""The admission policies without which no pod gets a group."""

_UNREAD, _UNSERVED = "could not be read", "is not served here"


@dataclass
class Health:
    """What of Muster is in a cluster.

    Attributes:
        found: whether anything of it is.
        missing: what is not: `Trigger resize-gang`.
        acting: the Triggers whose Service exists.
        left_out: the steps with neither Trigger nor Service.
        unknown: why nothing is known of a kind, by `triggers.eventing.knative.dev`.
    """

    found: bool = False
    missing: list[str] = field(default_factory=list)
    acting: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> bool:
        """Whether something is missing of a Muster that is installed."""
        return self.found and bool(self.missing)

    def __str__(self) -> str:
        state = "Muster is installed" if self.found else "Muster is not installed here"
        if self.broken:
            state += f" in part, missing: {', '.join(self.missing)}"
        elif self.found and self.unknown:
            state += ", as far as can be seen"
        elif not self.found and _UNREAD in self.unknown.values():
            state = "nothing of Muster was found"
        left_out = [f"steps left out: {', '.join(self.left_out)}"] if self.left_out else []
        unknown = dict.fromkeys(
            f"{'Knative' if why == _UNSERVED and 'knative' in kind else kind} {why}"
            for kind, why in self.unknown.items()
        )
        return "; ".join([state, *left_out, *unknown])

    def carried_out(self, step: str) -> str:
        """Return whether anything will carry out what a step plans, as text."""
        unknown = {self.unknown.get(_plural(kind)) for kind in (TRIGGERS, KNATIVE_SERVICES)}
        if _UNSERVED in unknown:
            return f"Knative {_UNSERVED}: only `muster run --kubeconfig` carries it out"
        if _UNREAD in unknown:
            return "whether its function is installed could not be read"
        if step.replace("_", "-") in self.acting:
            return "its function carries it out"
        return "nothing carries it out: its Trigger or Service is missing"


def read_health(cluster: Cluster, namespace: str = "") -> Health:
    """Return what of Muster is in a cluster, or in a namespace with an installation of its own."""
    health = Health()
    policies = {body["metadata"]["name"] for body in _listed(cluster, MUTATING_ADMISSION_POLICIES, health)}
    if not health.unknown:
        health.missing = [f"admission policy {name}" for name in _POLICIES if name not in policies]
    listed = _listed(cluster, TRIGGERS, health)
    triggers = [body for body in listed if (body.get("spec") or {}).get("broker") == MUSTER]
    services = _listed(cluster, KNATIVE_SERVICES, health)
    names = [name.replace("_", "-") for name in steps.step_names() if name not in steps.OPTIONAL]
    homes = [body["metadata"]["namespace"] for body in triggers if body["metadata"]["name"] in names]
    home = next((one for one in (namespace, POLICY_NAMESPACE, *homes) if one in homes), POLICY_NAMESPACE)
    wired = {b["metadata"]["name"]: b["spec"] for b in triggers if b["metadata"]["namespace"] == home}
    existing = {b["metadata"]["name"] for b in services if b["metadata"]["namespace"] == home}
    health.found = not (policies | wired.keys() | existing).isdisjoint((*_POLICIES, *names))
    if _plural(TRIGGERS) not in health.unknown:
        absent = {name for name in names if name not in wired}
        # The Service `muster` serves all steps in the overlay one-service.
        if wired and existing and MUSTER not in existing:
            health.left_out = sorted(absent - existing)
        health.missing += [f"Trigger {name}" for name in sorted(absent.difference(health.left_out))]
    if _plural(KNATIVE_SERVICES) not in health.unknown:
        sinks = {name: _service(spec.get("subscriber")) for name, spec in wired.items()}
        dead_letters = {_service((one.get("delivery") or {}).get("deadLetterSink")) for one in wired.values()}
        health.acting = {name for name, service in sinks.items() if service in {"", *existing}}
        absent = {*sinks.values(), *dead_letters} - existing - {""}
        health.missing += [f"Service {name}" for name in sorted(absent)]
    return health


def _service(sink: Mapping[str, Any] | None) -> str:
    """Return the name of the Knative Service that gets events; "" if it is something else."""
    ref = (sink or {}).get("ref") or {}
    return str(ref.get("name")) if ref.get("apiVersion") == KNATIVE_SERVICES.api_version else ""


def _plural(kind: Resource) -> str:
    return f"{kind.plural}.{kind.group}"


def _listed(cluster: Cluster, kind: Resource, health: Health) -> Objects:
    try:
        return cluster.list(kind)
    except (Forbidden, ApiGone) as error:
        health.unknown[_plural(kind)] = _UNREAD if isinstance(error, Forbidden) else _UNSERVED
    return []

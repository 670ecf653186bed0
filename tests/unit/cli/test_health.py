"""The health line of `muster status`: what of Muster is in a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cli.health import read_health
from muster.cluster.errors import ApiGone, ClusterError, Forbidden
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource
from muster.simulator.overlays import built, load

STEPS = {
    "create_workload",
    "create_pod_groups",
    "patch_pods",
    "resize_gang",
    "emit_conditions",
    "mark_runtime",
}


class Limited(Snapshot):
    """A cluster that refuses to list some kinds."""

    refusals: dict[str, type[ClusterError]]

    def list(self, resource: Resource, *of: Any, **options: Any) -> Any:
        """Raise the error of the kind, if it has one."""
        if resource.kind in self.refusals:
            raise self.refusals[resource.kind]("no", status=404)
        return super().list(resource, *of, **options)


def installed(overlay: str, without: str = "", **refusals: type[ClusterError]) -> Limited:
    """A cluster with an overlay, without objects `Kind/name`, that refuses to list some kinds."""
    gone = without.split()
    found = [o for o in load(built(overlay)) if f"{o['kind']}/{o['metadata']['name']}" not in gone]
    cluster = Limited(o for o in found if o["kind"] not in refusals)
    cluster.refusals = refusals
    return cluster


RESIZE = "Trigger/resize-gang"
POLICY = "MutatingAdmissionPolicy/muster-mark-jobs"
NO_KNATIVE: Any = {"Trigger": ApiGone, "Service": ApiGone}
LEFT_OUT = "Muster is installed; steps left out: "
IN_PART = "Muster is installed in part, missing: "


@pytest.mark.parametrize(
    ("cluster", "text", "idle"),
    [
        (installed("cluster"), "Muster is installed", set()),
        (installed("one-service"), "Muster is installed", set()),
        (installed("one-namespace"), f"{LEFT_OUT}mark-runtime", {"mark_runtime"}),
        (installed("example"), f"{LEFT_OUT}emit-conditions", {"emit_conditions"}),
        (installed("cluster", RESIZE), f"{IN_PART}Trigger resize-gang", {"resize_gang"}),
        (installed("one-service", RESIZE), f"{IN_PART}Trigger resize-gang", {"resize_gang"}),
        (installed("cluster", "Service/patch-pods"), f"{IN_PART}Service patch-pods", {"patch_pods"}),
        (installed("cluster", "Service/dead-letter"), f"{IN_PART}Service dead-letter", set()),
        (installed("one-service", "Service/muster"), f"{IN_PART}Service muster", STEPS),
        (installed("cluster", POLICY), f"{IN_PART}admission policy muster-mark-jobs", set()),
    ],
)
def test_what_is_missing_is_named(cluster: Snapshot, text: str, idle: set[str]) -> None:
    """By kind and name, whichever overlay is installed; a step that was left out whole is no fault."""
    health = read_health(cluster)
    assert (str(health), health.broken) == (text, text.startswith(IN_PART))
    assert {step for step in STEPS if health.carried_out(step).startswith("nothing")} == idle


def test_a_cluster_without_muster_is_no_fault() -> None:
    """Nor is one where Knative is not served, or where a user may not read Muster's objects."""
    unserved, unread = "Knative is not served here", "could not be read"
    nothing = Limited(())
    nothing.refusals = NO_KNATIVE | {"MutatingAdmissionPolicy": ApiGone}
    forbidden = installed("cluster", MutatingAdmissionPolicy=Forbidden, Trigger=Forbidden, Service=Forbidden)
    for cluster, state, about, planned in (
        (nothing, "Muster is not installed here; mutating", unserved, "muster run"),
        (installed("cluster", **NO_KNATIVE), "Muster is installed", unserved, "muster run"),
        (forbidden, "nothing of Muster was found", f"triggers.eventing.knative.dev {unread}", unread),
    ):
        health = read_health(cluster)
        assert not health.broken
        assert str(health).startswith(state)
        assert about in str(health)
        assert planned in health.carried_out("patch_pods")

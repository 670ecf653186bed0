"""Reading the pods that name one PodGroup by their own label, their controller and its policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.cluster import errors, read
from muster.cluster.interface import FROM_CACHE, Cluster
from muster.cluster.observe import policy_sources
from muster.cluster.read import list_if_served
from muster.objects.controllers import READABLE, PodController
from muster.objects.meta import ObjectRef, OwnerReference
from muster.objects.pods import Pod
from muster.objects.resources import DEPLOYMENTS, LABEL_VALUE, POD_GROUPS, PODS
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GANG, MANAGED_BY, MIN_COUNT, MUSTER
from muster.policy.groups.gathered import GatheredPods, is_of_another_revision, names_its_gang


class GatheredGroup(ObjectRef):
    """A PodGroup that gather_pods made, or is to make for the pods that name it."""


class AddedTo(GatheredGroup):
    """A PodGroup to which a pod was added, according to an event."""


def read_gathered(cluster: Cluster, subject: ObjectRef) -> GatheredPods:
    """Return a PodGroup with the pods that name it; their controller and policy where they can matter.

    The pods are those in the API server's cache, which has the pod of an event.
    """
    api = cluster.scheduling()
    if not api.served:
        return GatheredPods(subject, api)
    gathered = read_group_and_pods(cluster, subject)
    group, pod = gathered.group, gathered.first
    if pod is None or (isinstance(subject, AddedTo) and gathered.settled):
        return gathered
    controller = _controller(cluster, pod.metadata.controller, subject.namespace)
    gathered = replace(gathered, whole=True, controller=controller)
    gathered = replace(gathered, beside=_is_beside(cluster, gathered))
    if isinstance(subject, AddedTo) and group is not None:
        return gathered
    return replace(gathered, sources=policy_sources.of_pod(cluster, pod))


def read_group_and_pods(cluster: Cluster, subject: ObjectRef) -> GatheredPods:
    """Return a PodGroup and the pods that name it."""
    group = read.get(cluster, PodGroup, POD_GROUPS, subject)
    return GatheredPods(subject, cluster.scheduling(), group, pods_of_gang(cluster, subject))


def pods_of_gang(cluster: Cluster, group: ObjectRef) -> tuple[Pod, ...]:
    """Return the pods that name a PodGroup by the label GANG."""
    if not LABEL_VALUE.fullmatch(group.name):
        return ()
    listed = cluster.list(PODS, group.namespace, labels=f"{GANG}={group.name}", as_of=FROM_CACHE)
    return tuple(pod for pod in map(Pod.read, listed) if pod.pod_group_name == group.name)


def gathered_groups(cluster: Cluster, namespace: str) -> Iterator[GatheredGroup]:
    """Yield the PodGroups of a namespace that gather_pods made, and those that its pods name."""
    if not namespace:
        return
    labels = f"{MANAGED_BY}={MUSTER},{GANG}"
    names = {
        body["metadata"]["name"] for body in list_if_served(cluster, POD_GROUPS, namespace, labels=labels)
    }
    pods = map(Pod.read, cluster.list(PODS, namespace, labels=MIN_COUNT, as_of=FROM_CACHE))
    names |= {pod.pod_group_name for pod in pods if names_its_gang(pod)}
    yield from (
        GatheredGroup(POD_GROUPS.api_version, POD_GROUPS.kind, namespace, name) for name in sorted(names)
    )


def _controller(cluster: Cluster, owner: OwnerReference | None, namespace: str) -> PodController | None:
    """Return a controller of pods, of a ReplicaSet its Deployment; None if it is of another kind, or gone."""
    found = _read(cluster, owner, namespace)
    above = None if found is None else found.metadata.controller
    if above is not None and above.kind == DEPLOYMENTS.kind:
        return _read(cluster, above, namespace) or found
    return found


def _read(cluster: Cluster, owner: OwnerReference | None, namespace: str) -> PodController | None:
    resource = None if owner is None else READABLE.get((owner.group, owner.kind))
    if owner is None or resource is None:
        return None
    try:
        return read.get(cluster, PodController, resource, owner.ref_in(namespace))
    except errors.ApiGone:
        return None


def _is_beside(cluster: Cluster, gathered: GatheredPods) -> bool:
    """Whether another revision of the same Deployment has pods on nodes, labelled MIN_COUNT or not."""
    deployment, owner = gathered.controller, gathered.owner
    if deployment is None or deployment.kind != DEPLOYMENTS.kind or owner is None:
        return False
    selector = deployment.spec.selector.get("matchLabels") or {}
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    listed = cluster.list(PODS, gathered.subject.namespace, labels=labels, as_of=FROM_CACHE)
    return any(is_of_another_revision(pod, deployment, owner) for pod in map(Pod.read, listed))

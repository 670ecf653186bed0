"""StatefulSets, Deployments and plain pods whose template says how many start together."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.owners import Object
from tests.e2e.support.story import RealStory

MIN_COUNT = "muster.dev/min-count"


def a_template(size: int | str, *, cpu: int = 1, **labels: str) -> Object:
    """Return a pod template with the label."""
    resources = {"requests": {"cpu": str(cpu)}}
    containers = [{"name": "main", "image": "example.com/train", "resources": resources}]
    return {
        "metadata": {"labels": {"app": "web", MIN_COUNT: str(size), **labels}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 1},
    }


def a_stateful_set(name: str, replicas: int, size: int | str = "all", *, cpu: int = 1, **spec: Any) -> Object:
    """Return a StatefulSet that makes its pods at once."""
    return _controller("StatefulSet", name, replicas, a_template(size, cpu=cpu)) | {
        "spec": {
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": a_template(size, cpu=cpu),
            **spec,
        }
    }


def a_deployment(name: str, replicas: int, size: int | str = "all", *, cpu: int = 1, **spec: Any) -> Object:
    """Return a Deployment."""
    deployment = _controller("Deployment", name, replicas, a_template(size, cpu=cpu))
    deployment["spec"] |= spec
    return deployment


def a_pod(name: str, gang: str, size: int, *, cpu: int = 1) -> Object:
    """Return a plain pod of a named gang."""
    template = a_template(size, cpu=cpu, **{"muster.dev/gang": gang})
    metadata = {"name": name, **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def scaled(story: RealStory, obj: Object, replicas: int) -> None:
    """Set the replicas of a controller."""
    story.patch(obj, {"spec": {"replicas": replicas}})


def min_counts(story: RealStory) -> list[int]:
    """Return the minCount of each PodGroup, 0 for a basic one."""
    policies = [group["spec"]["schedulingPolicy"] for group in story.groups().values()]
    return sorted(policy.get("gang", {}).get("minCount", 0) for policy in policies)


def _controller(kind: str, name: str, replicas: int, template: Object) -> Object:
    selector = {"matchLabels": {"app": template["metadata"]["labels"]["app"]}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}

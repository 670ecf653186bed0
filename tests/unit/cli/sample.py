"""A Job of two pods, the event about it, and what else a cluster holds then."""

from __future__ import annotations

from typing import Any

import yaml

Object = dict[str, Any]
UID = "6b31a4b2-d677-4455-9150-43f1a8adc214"


def a_job(**changed: Any) -> Object:
    """An Indexed Job that mark-jobs has labelled; `changed` replaces fields of its spec."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sweep", "namespace": "team", "uid": UID, "resourceVersion": "7"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "managedBy": "kubernetes.io/job-controller",
            "template": {
                "metadata": {"labels": {"muster.dev/group": "main"}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
            **changed,
        },
    }


def a_namespace() -> Object:
    """The namespace of the Job, opted in."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"muster.dev/gang-jobs": "enabled"}},
    }


def an_event(found: Object | None = None, happened: str = "add", **attributes: Any) -> Object:
    """What ApiServerSource sends about an object, structured; the Job where none is given."""
    about = a_job() if found is None else found
    return {
        "specversion": "1.0",
        "id": "1",
        "source": "https://kubernetes",
        "type": f"dev.knative.apiserver.resource.{happened}",
        "datacontenttype": "application/json",
        "time": "2026-11-21T08:17:25.503717088Z",
        "apiversion": about["apiVersion"],
        "kind": about["kind"],
        "data": about,
        **attributes,
    }


def as_yaml(*documents: Any) -> str:
    """A YAML stream."""
    return yaml.safe_dump_all(documents)

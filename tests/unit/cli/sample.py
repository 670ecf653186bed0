"""A Job of two pods, the event about it, and what else a cluster holds then."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support import builders as b
from tests.support.builders import Object

UID = "6b31a4b2-d677-4455-9150-43f1a8adc214"


def a_job(**changed: Any) -> Object:
    """An Indexed Job that mark-jobs has labelled; `changed` replaces fields of its spec."""
    job = b.a_job(b.with_spec(**changed), b.named("sweep"), b.of_uid(UID))
    job["metadata"]["namespace"] = "team"
    return job


def a_pod(name: str = "sweep-0-abcde") -> Object:
    """A pod of the Job, stamped and gated."""
    pod = b.a_pod(a_job(), 0, b.named(name), b.of_uid(name))
    pod["metadata"]["namespace"] = "team"
    pod["spec"]["containers"][0]["image"] = "busybox"
    return pod


def a_namespace() -> Object:
    """The namespace of the Job, opted in."""
    return b.a_namespace(b.named("team"))


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

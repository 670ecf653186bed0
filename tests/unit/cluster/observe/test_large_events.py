"""Events of the Job controller, of which a sweep keeps little if they are large."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from muster.cluster.interface import Cluster
from muster.cluster.observe.members import failed_create
from muster.policy.owners.job import Job
from tests.support import builders as b


def test_an_event_without_its_object_says_nothing() -> None:
    """A sweep keeps the name alone of one that has more than 32 KiB."""
    job = b.a_job()
    large: dict[str, Any] = {"metadata": {"name": "large"}}
    quota = {"involvedObject": {"uid": job["metadata"]["uid"]}, "message": "exceeded quota"}
    cluster = SimpleNamespace(single_reads=5, list=lambda *_, **__: [large, quota])
    assert failed_create(cast(Cluster, cluster), (Job.read(job),)) == "exceeded quota"

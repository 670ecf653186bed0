"""Fields of the released types by which another controller groups pods; Muster reads every one of them.

With a new release of Kubernetes, JobSet or the Trainer the schemas are made anew, and a field that is new
fails here: it has to be read (`grouped_by_others` in shared/muster/policy/owners/job.py for a Job's,
`sources_of_runtime` in shared/muster/policy/sources/source.py for a runtime's).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from muster.simulator.apiserver.schemas.regenerate import HERE

FIELDS = ("scheduling", "schedulingGroup")
_ABOVE_KINDS = ("components.", "spec.versions.schema.openAPIV3Schema.")


def fields(at: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of all such fields below a schema, as a person would write them."""
    if isinstance(at, list):
        for item in at:
            yield from fields(item, path)
    elif isinstance(at, dict):
        for name in FIELDS:
            if name in (at.get("properties") or {}):
                yield ".".join((*path, name))
        for key, below in at.items():
            yield from fields(below, path if key in ("properties", "items") else (*path, key))


@pytest.mark.parametrize(
    ("release", "found"),
    [
        pytest.param(
            "kubernetes-1.36.3", {"io.k8s.api.core.v1.PodSpec.schedulingGroup"}, id="Kubernetes 1.36"
        ),
        pytest.param(
            "kubernetes-1.37.1",
            {"io.k8s.api.batch.v1.JobSpec.scheduling", "io.k8s.api.core.v1.PodSpec.schedulingGroup"},
            id="Kubernetes 1.37",
        ),
        pytest.param(
            "jobset-0.12.0",
            {"spec.replicatedJobs.template.spec.template.spec.schedulingGroup"},
            id="JobSet: the Jobs in it are of 1.36 and have no scheduling",
        ),
        pytest.param(
            "trainer-2.3.0",
            {"spec.template.spec.replicatedJobs.template.spec.template.spec.schedulingGroup"},
            id="Trainer: both kinds of runtimes, and nothing on a TrainJob",
        ),
    ],
)
def test_the_fields_of_a_release_are_known(release: str, found: set[str]) -> None:
    """By the schemas that the API server of that release, and the CRDs, came with."""
    schemas = json.loads(gzip.decompress((HERE / f"{release}.json.gz").read_bytes()))
    paths = {path.removeprefix(_ABOVE_KINDS[0]).removeprefix(_ABOVE_KINDS[1]) for path in fields(schemas)}
    assert paths == found


def test_a_new_field_is_seen() -> None:
    """As KEP-3015 plans it for the runtime."""
    planned = {"properties": {"spec": {"properties": {"scheduling": {"type": "object"}}}}}
    assert list(fields(planned)) == ["spec.scheduling"]

"""Views read the fields that matter, whatever other fields an object has or lacks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from muster.objects.meta import fault, path_of
from muster.objects.scheduling import Workload
from muster.policy.plans.mark_runtime import FieldPath, owned_by
from muster.simulator.quantities import is_quantity, milli
from tests.support.builders import a_workload, with_spec


def test_null_means_absent() -> None:
    """Structs without omitempty come back as null."""
    body = a_workload(modifiers=[with_spec(compositePodGroupTemplates=None)])
    body["metadata"]["annotations"] = None
    workload = Workload.read(body)
    assert (workload.spec.composite_pod_group_templates, workload.metadata.annotations) == ((), {})


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("2", 2000),
        ("500m", 500),
        ("1k", 1_000_000),
        ("32Gi", 32 * 2**30 * 1000),
        ("1u", 1),
        *((text, None) for text in ("", "abc", "1_0", "1e", "1i", "NaN")),
    ],
)
def test_quantities(quantity: str, expected: int | None) -> None:
    """In thousandths, rounded up; what is no quantity counts as nothing."""
    assert is_quantity(quantity) == (expected is not None)
    assert milli(quantity) == (expected or 0)


PATH = FieldPath(("spec", "jobs", (0, "node"), "metadata", "labels", "a"))


def test_the_fields_of_a_manager() -> None:
    """Of all its entries; the API server stores any field set that a client writes."""
    job: dict[str, Any] = {".": {}, "f:metadata": {"f:labels": {"f:a": {}}}}
    entries = [
        {"manager": "muster", "fieldsV1": {"f:spec": {"f:jobs": {'k:{"name":"node"}': job}}}},
        {"manager": "muster"},
        {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:jobs": {'k:{"name":"node","n":1}': job}}}},
        {"manager": "odd", "fieldsV1": {"f:spec": []}},
    ]
    body = {"metadata": {"managedFields": entries}}
    assert owned_by(body, "muster", [PATH]) == {PATH}
    assert owned_by(body, "kubectl", [PATH]) == owned_by(body, "odd", [PATH]) == frozenset()


class _Entry(BaseModel):
    name: str


class _Checked(BaseModel):
    """Fields of the types that views and policies have."""

    model_config = ConfigDict(extra="forbid")

    count: Annotated[int, Field(ge=1, le=9)] = 1
    flag: bool = False
    text: Annotated[str, Field(min_length=2, max_length=3)] = "ab"
    mode: Literal["Follow", "Flag"] = "Flag"
    names: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    labels: dict[str, str] = {}
    entries: list[_Entry] = []


@pytest.mark.parametrize(
    ("data", "path", "words"),
    [
        ({"count": "many"}, "count", "must be an integer"),
        ({"count": 0}, "count", "must be at least 1"),
        ({"flag": "perhaps"}, "flag", "must be true or false"),
        ({"text": 7}, "text", "must be a string"),
        ({"mode": "follow"}, "mode", "must be Follow or Flag"),
        ({"names": "a"}, "names", "must be a list"),
        ({"labels": []}, "labels", "must be a mapping"),
        ({"entries": [{"name": "a"}, {}]}, "entries[1].name", "is missing"),
        ({"nodes": 1}, "nodes", "unknown field"),
    ],
)
def test_a_fault_has_a_message_and_a_path(data: dict[str, Any], path: str, words: str) -> None:
    """In the words of Kubernetes, never in pydantic's."""
    with pytest.raises(ValidationError) as caught:
        _Checked.model_validate(data)
    error = caught.value.errors()[0]
    assert (path_of(error["loc"]), fault(error)) == (path, words)

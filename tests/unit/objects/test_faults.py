"""What is wrong with a value is reported in the words of Kubernetes, never in pydantic's."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from muster.objects.faults import fault, path_of


class _Entry(BaseModel):
    name: str


class _Checked(BaseModel):
    """Fields of every type that views and policies have."""

    model_config = ConfigDict(extra="forbid")

    count: Annotated[int, Field(ge=1, le=9)] = 1
    strict: Annotated[int, Field(strict=True, gt=0, lt=9)] = 1
    flag: bool = False
    strict_flag: Annotated[bool, Field(strict=True)] = False
    text: Annotated[str, Field(min_length=2, max_length=3)] = "ab"
    mode: Literal["Follow", "Flag"] = "Flag"
    only: Literal["All"] = "All"
    names: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    pair: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    entries: list[_Entry] = []
    entry: _Entry = _Entry(name="a")


@pytest.mark.parametrize(
    ("data", "path", "words"),
    [
        ({"count": "many"}, "count", "must be an integer"),
        ({"count": 1.5}, "count", "must be an integer"),
        ({"count": None}, "count", "must be an integer"),
        ({"strict": "1"}, "strict", "must be an integer"),
        ({"count": 0}, "count", "must be at least 1"),
        ({"count": 10}, "count", "must be at most 9"),
        ({"strict": 0}, "strict", "must be greater than 0"),
        ({"strict": 9}, "strict", "must be less than 9"),
        ({"flag": "perhaps"}, "flag", "must be true or false"),
        ({"strict_flag": 1}, "strict_flag", "must be true or false"),
        ({"text": 7}, "text", "must be a string"),
        ({"text": "a"}, "text", "must have at least 2 characters"),
        ({"text": "abcd"}, "text", "must have at most 3 characters"),
        ({"mode": "follow"}, "mode", "must be Follow or Flag"),
        ({"only": "None"}, "only", "must be All"),
        ({"names": "a"}, "names", "must be a list"),
        ({"pair": "a"}, "pair", "must be a list"),
        ({"names": []}, "names", "has 0 entries, at least 1 must be there"),
        ({"names": ["a", "b", "c"]}, "names", "has 3 entries, at most 2 are allowed"),
        ({"labels": []}, "labels", "must be a mapping"),
        ({"entry": 7}, "entry", "must be a mapping"),
        ({"entries": [{"name": "a"}, {}]}, "entries[1].name", "is missing"),
        ({"nodes": 1}, "nodes", "unknown field"),
    ],
)
def test_a_fault_has_a_message_and_a_path(data: dict[str, Any], path: str, words: str) -> None:
    """As a person would write them."""
    with pytest.raises(ValidationError) as caught:
        _Checked.model_validate(data)
    error = caught.value.errors()[0]
    assert (path_of(error["loc"]), fault(error)) == (path, words)

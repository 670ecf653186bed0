"""The public names of the library are those of docs/library.md; their signatures change on purpose only."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
from enum import StrEnum
from importlib.metadata import version
from typing import Any

import pytest
from pydantic import BaseModel

import muster
from muster import library, testing
from tests.docs.commands import ROOT

PATH = ROOT / "docs/library.md"
PAGE = PATH.read_text()
TESTS = "## For tests: `muster.testing`"
MODULES = {"muster": library, "muster.testing": testing}


_ITEM = re.compile(r"^- ((?:`\w+(?:\([^`]*)?`(?: (?=`)|(?=: \S)))+)", re.MULTILINE)
"""What a line about public names begins with: each name, a function's or a class's with its signature."""


def _listed(text: str) -> list[str]:
    """Return the names that begin the items of the lists of a text."""
    return [name for item in _ITEM.findall(text) for name in re.findall(r"`(\w+)", item)]


def test_the_page_lists_every_public_name_with_its_signature(muster_golden: testing.CompareGolden) -> None:
    """Each once, with a sentence; `pytest tests/library --muster-update` writes signatures into the page."""
    for_steps, _, for_tests = PAGE.partition(TESTS)
    assert sorted(_listed(for_steps)) == sorted(library.__all__)
    assert sorted(_listed(for_tests)) == sorted(testing.__all__)
    values = {name: getattr(found, name) for found in MODULES.values() for name in found.__all__}

    def shown(item: re.Match[str]) -> str:
        return " ".join(f"`{_call(name, values[name])}`" for name in re.findall(r"`(\w+)", item[1]))

    muster_golden(_ITEM.sub(lambda item: f"- {shown(item)}", PAGE), PATH)


def test_public_names_are_found_in_the_package_and_no_others() -> None:
    """`from muster import NAME` works; a private name is an error."""
    for name in library.__all__:
        assert getattr(muster, name) is getattr(library, name)
    with pytest.raises(AttributeError, match="no public name 'plan_workload'"):
        _ = muster.plan_workload  # type: ignore[attr-defined]


def test_the_package_can_be_explored_in_an_interpreter() -> None:
    """`dir()`, `import *`, the version, and the lines of the docstring, which work as typed."""
    assert set(library.__all__) == {name for name in dir(muster) if not name.startswith("__")}
    assert muster.__all__ == library.__all__
    assert muster.__version__ == version("muster-gangs")
    assert doctest.testmod(muster) == (0, 5)


def test_the_signatures_are_those_that_were_released(muster_golden: testing.CompareGolden) -> None:
    """A change of the golden file belongs into CHANGELOG.md; of a removed or renamed part, under Breaking."""
    muster_golden(
        {
            module: {name: _signature(getattr(found, name)) for name in sorted(found.__all__)}
            for module, found in MODULES.items()
        },
        "golden/surface.yaml",
    )


def _signature(value: Any) -> Any:
    if value is library.Reason:
        return "the table of docs/operations.md"
    if isinstance(value, type):
        return [_unquoted(member) for member in _members(value)]
    if inspect.isroutine(value):
        return _unquoted(str(inspect.signature(value)))
    return [law.__name__ for law in value] if isinstance(value, tuple) else repr(value)


def _call(name: str, value: Any) -> str:
    """Return how something is called, a class without the types of its fields; else its name."""
    if inspect.isroutine(value):
        return _unquoted(f"{name}{inspect.signature(value)}").replace("_View", "View")
    made = isinstance(value, type) and dataclasses.is_dataclass(value)
    if made or value in (testing.EmbeddedCluster, testing.RunningStack):
        parameters = inspect.signature(value).parameters.values()
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
        return re.sub(r"=<[^>]*>[^,)]*>?", "=...", f"{name}{inspect.Signature(bare)}")
    return name


def _unquoted(signature: str) -> str:
    """Return a signature with its annotations as they were written."""
    return re.sub(r"(: |-> )'([^']+)'", r"\1\2", signature)


def _members(kind: type) -> list[str]:
    """Return the fields, methods and properties of a class without underscore, inherited ones included."""
    if issubclass(kind, StrEnum):
        return [f"{member.name} = {member.value}" for member in kind]
    fields = _fields(kind)
    members = {
        name: member
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("muster.")
        for name, member in vars(base).items()
        if not name.startswith("_") and name not in fields
    }
    shown = [_member(name, member) for name, member in members.items()]
    return [*(f"{name}: {annotation}" for name, annotation in fields.items()), *filter(None, shown)]


def _member(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"{name}: {inspect.signature(member.fget).return_annotation}"  # type: ignore[arg-type]
    if isinstance(member, classmethod | staticmethod):
        return f"{name}{inspect.signature(member.__func__)}"
    return f"{name}{inspect.signature(member)}" if inspect.isfunction(member) else ""


def _fields(kind: type) -> dict[str, str]:
    if dataclasses.is_dataclass(kind):
        return {field.name: str(field.type) for field in dataclasses.fields(kind)}
    if issubclass(kind, BaseModel):
        return {name: inspect.formatannotation(field.annotation) for name, field in kind.model_fields.items()}
    return {}

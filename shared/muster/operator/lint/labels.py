"""Check the labels and annotations `muster.dev/...` of an object: their names, values and places."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.objects.text import cut_to
from muster.operator.lint.model import Severity
from muster.policy.group_labels import (
    GATE_SWITCH,
    GROUP,
    GROUP_PER,
    GROUP_SIZE,
    LEADER_GROUP,
    LEADER_GROUP_PER,
    NAMESPACE_SWITCH,
    OPTED_OUT,
    PER_BLOCK_OF_JOB,
    PER_JOB,
    is_musters,
    read_group_labels,
)
from muster.policy.sources.source import ANNOTATION

_PREFIX = "muster.dev/"

KEY_LENGTH = 60
"""The most characters of a key in the path of a field, which the message of each fault below it repeats."""


@dataclass(frozen=True)
class _Rule:
    """The valid values of a label or annotation.

    Attributes:
        field: `labels` or `annotations`.
        place: `pod` for pods and pod templates, `Namespace`, or `owner` for jobs and runtimes.
        valid: whether a value has an effect.
        values: these values in words.
    """

    field: str
    place: str
    valid: Callable[[str], bool] = lambda _value: True
    values: str = ""


def _names_a_group(value: str) -> bool:
    return value == OPTED_OUT or read_group_labels({GROUP: value}) is not None


def _is_a_size(value: str) -> bool:
    read = read_group_labels({GROUP: "any", GROUP_SIZE: value})
    return read is not None and read.shape.size > 0


_RULES: Mapping[str, _Rule] = {
    GROUP: _Rule(
        "labels",
        "pod",
        _names_a_group,
        f"a DNS label or {OPTED_OUT}",
    ),
    LEADER_GROUP: _Rule("labels", "pod", _names_a_group, "a DNS label"),
    GROUP_SIZE: _Rule("labels", "pod", _is_a_size, "a number from 1 to 999999"),
    GROUP_PER: _Rule(
        "labels", "pod", {PER_JOB, PER_BLOCK_OF_JOB}.__contains__, f"{PER_JOB} or {PER_BLOCK_OF_JOB}"
    ),
    LEADER_GROUP_PER: _Rule("labels", "pod", {PER_JOB}.__contains__, PER_JOB),
    GATE_SWITCH: _Rule("annotations", "pod", {"off"}.__contains__, "off"),
    NAMESPACE_SWITCH: _Rule("labels", "Namespace", {"enabled"}.__contains__, "enabled"),
    ANNOTATION: _Rule("annotations", "owner"),
}


def label_faults(body: Mapping[str, Any]) -> Iterator[tuple[Severity, str, str]]:
    """Yield severity, reason and message of each label or annotation that has no effect."""
    if is_musters(body["metadata"].get("labels") or {}):
        return  # Muster's own objects have labels of their own
    for path, place, metadata in _metadata(body):
        for field in ("labels", "annotations"):
            values = metadata.get(field)
            for name, value in values.items() if isinstance(values, Mapping) else ():
                if str(name).startswith(_PREFIX):
                    for severity, reason, message in _check(place, field, str(name), str(value)):
                        at = f"{path}.{field}: {cut_to(str(name), KEY_LENGTH)}"
                        yield severity, reason, f"{at}: {message}"


def _check(place: str, field: str, name: str, value: str) -> Iterator[tuple[Severity, str, str]]:
    rule = _RULES.get(name)
    if rule is None:
        near = difflib.get_close_matches(name[:KEY_LENGTH], _RULES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield Severity.WARNING, "UnknownLabel", f"Muster does not know it{hint}"
    elif rule.field != field:
        yield Severity.WARNING, "MisplacedLabel", f"has no effect: it is read from {rule.field}"
    elif rule.place != place:
        where = {"pod": "a pod template", "Namespace": "a Namespace", "owner": "a job or runtime"}[rule.place]
        yield Severity.WARNING, "MisplacedLabel", f"has no effect: it is read from {where}"
    elif not rule.valid(value):
        yield (
            Severity.ERROR,
            "InvalidLabel",
            f"{cut_to(value, KEY_LENGTH)!r} has no effect: must be {rule.values}",
        )


@dataclass(frozen=True, slots=True)
class _Path:
    """The path of a field; its text is made for a fault only: objects have millions of fields."""

    part: str | int
    above: _Path | None = None

    def __str__(self) -> str:
        if self.above is None:
            return str(self.part)
        if isinstance(self.part, int):
            return f"{self.above}[{self.part}]"
        return f"{self.above}.{cut_to(self.part, KEY_LENGTH)}"


def _metadata(body: Mapping[str, Any]) -> Iterator[tuple[_Path, str, Mapping[str, Any]]]:
    """Yield path, place and content of the metadata of an object and of all templates in it."""
    kind = body.get("kind")
    place = {"Pod": "pod", "Namespace": "Namespace"}.get(str(kind), "owner")
    metadata, spec = body.get("metadata"), _Path("spec")
    if isinstance(metadata, Mapping):
        own = metadata
        if kind == "Job":
            own = _without_copies(metadata, (labels for _, _, labels in _templates(body.get("spec"), spec)))
        yield _Path("metadata"), place, own
    yield from _templates(body.get("spec"), spec)


def _without_copies(metadata: Mapping[str, Any], templates: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the metadata of a Job without the labels that its pod template has too.

    To a Job without labels the API server copies those of its pod template (SetDefaults_Job,
    pkg/apis/batch/v1/defaults.go, Kubernetes v1.37.1).
    """
    labels = metadata.get("labels")
    if not isinstance(labels, Mapping):
        return metadata
    own = dict(labels)
    for template in templates:
        copies = template.get("labels")
        for name, value in copies.items() if isinstance(copies, Mapping) else ():
            if own.get(name) == value:
                own.pop(name, None)
    return {**metadata, "labels": own}


def _templates(at: Any, path: _Path) -> Iterator[tuple[_Path, str, Mapping[str, Any]]]:
    if isinstance(at, list):
        for number, entry in enumerate(at):
            if isinstance(entry, list | Mapping):
                yield from _templates(entry, _Path(number, path))
    elif isinstance(at, Mapping):
        metadata, spec = at.get("metadata"), at.get("spec")
        if isinstance(metadata, Mapping):
            is_pod = isinstance(spec, Mapping) and "containers" in spec
            yield _Path("metadata", path), "pod" if is_pod else "owner", metadata
        for key, value in at.items():
            if key != "metadata" and isinstance(value, list | Mapping):
                yield from _templates(value, _Path(str(key), path))

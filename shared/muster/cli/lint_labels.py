"""The labels and annotations muster.dev/* in manifests: where they are read, and which values are valid."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from muster.cli.dry_run import RUNTIMES, is_cron_job
from muster.objects.resources import is_known
from muster.policy.group_labels import (
    ALL,
    GANG,
    GANG_BY,
    GATE_SWITCH,
    GROUP,
    GROUP_PER,
    GROUP_SIZE,
    LEADER_GROUP,
    LEADER_GROUP_PER,
    MIN_COUNT,
    NAMESPACE_SWITCH,
    OPTED_OUT,
    PER_BLOCK_OF_JOB,
    PER_JOB,
    is_musters,
    read_group_labels,
)
from muster.policy.owners import owner_kind
from muster.policy.sources.source import ANNOTATION

PREFIX = "muster.dev/"
_PLACES = {
    "pod": "a pod template of a job or runtime",
    "Namespace": "a Namespace",
    "owner": "a job or runtime",
    "gang": f"a pod template with the label {MIN_COUNT}",
}


class Severity(StrEnum):
    """Whether pods run in another way than the manifest says, or something deserves a look."""

    ERROR = "error"
    WARNING = "warning"


Found = tuple[Severity, str, str]
"""Severity, reason and message of a fault."""


_LATER = r"|.*\{\{.*"
"""Text that a workflow's controller replaces."""
_MIN_COUNT = re.compile(rf"[1-9][0-9]{{0,5}}|{ALL}{_LATER}")
_GANG = re.compile(rf"(?=.{{1,63}}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*{_LATER}")
_LABEL_KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def _names_a_group(value: str) -> bool:
    return value == OPTED_OUT or read_group_labels({GROUP: value}) is not None


def _is_a_size(value: str) -> bool:
    read = read_group_labels({GROUP: "any", GROUP_SIZE: value})
    return read is not None and read.shape.size > 0


_RULES: Mapping[str, tuple[str, str, Callable[[str], object], str]] = {
    GROUP: ("labels", "pod gang", _names_a_group, f"a DNS label or {OPTED_OUT}"),
    LEADER_GROUP: ("labels", "pod", _names_a_group, "a DNS label"),
    GROUP_SIZE: ("labels", "pod", _is_a_size, "a number from 1 to 999999"),
    GROUP_PER: (
        "labels",
        "pod",
        {PER_JOB, PER_BLOCK_OF_JOB}.__contains__,
        f"{PER_JOB} or {PER_BLOCK_OF_JOB}",
    ),
    LEADER_GROUP_PER: ("labels", "pod", {PER_JOB}.__contains__, PER_JOB),
    MIN_COUNT: ("labels", "gang", _MIN_COUNT.fullmatch, f"a number from 1 to 999999 or {ALL}"),
    GANG: ("labels", "gang", _GANG.fullmatch, "a name of lowercase letters, digits, - and ."),
    GANG_BY: ("annotations", "gang", _LABEL_KEY.fullmatch, "the key of a label"),
    GATE_SWITCH: ("annotations", "pod gang", {"off", "all"}.__contains__, "off or all"),
    NAMESPACE_SWITCH: ("labels", "Namespace", {"enabled"}.__contains__, "enabled"),
    ANNOTATION: ("annotations", "owner gang", lambda _policy: True, ""),
}
"""Of each label or annotation the field and place where it is read, which values are valid, and in words."""


def label_faults(body: Mapping[str, Any]) -> Iterator[Found]:
    """Yield severity, reason and message of each label or annotation that has no effect."""
    if is_musters(body["metadata"].get("labels") or {}):
        return  # Muster's own objects have labels of their own
    for path, place, metadata in _metadata(body):
        for part in ("labels", "annotations"):
            values = metadata.get(part)
            for name, value in values.items() if isinstance(values, Mapping) else ():
                if str(name).startswith(PREFIX):
                    found = _check(place, part, str(name), str(value))
                    if found is not None:
                        severity, reason, message = found
                        yield severity, reason, f"{path}.{part}: {name}: {message}"


def _place_of(body: Mapping[str, Any]) -> str:
    """Return as what the metadata of an object is read; "" if Muster does not read it."""
    group, kind = body["apiVersion"].rpartition("/")[0], body["kind"]
    owners = body["metadata"].get("ownerReferences") or []
    if not is_known(body["apiVersion"], kind):
        return ""
    if kind == "Pod":  # stamp-pods acts on those of Jobs
        return (
            "pod" if any(owner.get("controller") and owner.get("kind") == "Job" for owner in owners) else ""
        )
    if kind in RUNTIMES or owner_kind(group, kind):
        return "owner"
    return "Namespace" if kind == "Namespace" else ""


def _check(place: str, part: str, name: str, value: str) -> Found | None:
    rule = _RULES.get(name)
    if rule is None:
        near = difflib.get_close_matches(name, _RULES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return Severity.WARNING, "UnknownLabel", f"Muster does not know it{hint}"
    read_part, read_place, valid, values = rule
    places = read_place.split()
    if read_part != part or place not in places:
        where = read_part if read_part != part else _PLACES[places[0]]
        return Severity.WARNING, "MisplacedLabel", f"has no effect: it is read from {where}"
    if not valid(value):
        return Severity.ERROR, "InvalidLabel", f"{value!r} has no effect: must be {values}"
    return None


def _metadata(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, place and content of the metadata of an object and of all templates in it."""
    templates = list(_templates(body.get("spec"), "spec"))
    metadata: Mapping[str, Any] = body["metadata"]
    if body["kind"] == "Job":
        # To a Job without labels the API server copies those of its pod template (SetDefaults_Job).
        copied = {item for _, _, each in templates for item in (each.get("labels") or {}).items()}
        own = {item for item in (metadata.get("labels") or {}).items() if item not in copied}
        metadata = {**metadata, "labels": dict(own)}
    place = _place_of(body)
    yield "metadata", "gang" if body["kind"] == "Pod" and _is_sized(metadata) else place, metadata
    is_read = place or is_cron_job(body)
    for path, of_template, found in templates:
        is_gang = _is_sized(found) and (of_template == "pod" or not is_read)
        yield path, "gang" if is_gang else of_template if is_read else "", found


def gang_templates(body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return path and metadata of the pod templates with MIN_COUNT in an object of any kind, or of a pod."""
    return [(path, metadata) for path, place, metadata in _metadata(body) if place == "gang"]


def _is_sized(metadata: Mapping[str, Any]) -> bool:
    return MIN_COUNT in (metadata.get("labels") or {})


def _templates(at: Any, path: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, place and content of the metadata of each template below a field."""
    if isinstance(at, list):
        for number, entry in enumerate(at):
            yield from _templates(entry, f"{path}[{number}]")
    elif isinstance(at, Mapping):
        metadata, spec = at.get("metadata"), at.get("spec")
        if isinstance(metadata, Mapping):
            is_pod = isinstance(spec, Mapping) and "containers" in spec
            yield f"{path}.metadata", "pod" if is_pod else "owner", metadata
        for key, value in at.items():
            if key != "metadata":
                yield from _templates(value, f"{path}.{key}")

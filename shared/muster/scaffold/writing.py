"""Writing the folder of a new step from the templates, under a name that `kubectl apply -k` can use."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from string import Template

import yaml

from muster.data import EVENTING
from muster.objects import yaml_files
from muster.objects.yaml_files import SafeDumper
from muster.runtime.steps import step_names
from muster.scaffold.reactions import EventKind
from muster.testing.cases import EVENT_FILE, OBJECTS_FILE, Case, envelope, plan_of
from muster.testing.manifests import load_step
from muster.testing.recordings import shipped, slim, slim_event

_KUBERNETES = frozenset({"admin", "cluster-admin", "default", "edit", "view"})
"""The ClusterRoles for users (bootstrappolicy, v1.37.1), and the service account that each namespace has."""
_TEMPLATES = Path(__file__).parent / "templates"
_SOURCE = "source.yaml.txt"
"""Only for events that Muster's own sources do not send."""


def owner_of(service: str) -> str:
    """Return whose objects of that name a step would replace: `Muster`, `Kubernetes` or ""."""
    if service in _KUBERNETES:
        return "Kubernetes"
    return "Muster" if service.startswith("muster-") or service in _names_of_muster() else ""


@cache
def _names_of_muster() -> frozenset[str]:
    """Return the names of functions, and of all objects in eventing/, whichever overlay has them."""
    documents = [
        document
        for path in EVENTING.rglob("*.yaml")
        if not path.is_relative_to(EVENTING / "examples")
        for document in yaml_files.load_all(path.read_text())
        if isinstance(document, dict)
    ]
    names = {(document.get("metadata") or {}).get("name") for document in documents}
    functions = (name.replace("_", "-") for name in step_names())
    return frozenset(("muster", "dead-letter", *functions, *filter(None, names)))


def write_step(folder: Path, reaction: EventKind) -> list[Path]:
    """Write a step that marks the objects of a reaction, with manifests and tests that pass.

    The folder has the name of the step, `label_racks`; the files are returned relative to it, in
    alphabetical order.

    Raises:
        FileExistsError: the folder exists.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True)
    values = _values(folder.name, reaction)
    for template in sorted(_TEMPLATES.rglob("*.txt")):
        if template.name == _SOURCE and not reaction.labels:
            continue
        path = folder / str(template.relative_to(_TEMPLATES)).removesuffix(".txt").replace(
            "name", folder.name
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(template.read_text()).substitute(values))
    _write_case(folder, reaction)
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _values(name: str, reaction: EventKind) -> dict[str, str]:
    resource, labels, summary = reaction.resource, reaction.labels, reaction.summary
    names = "Action Cluster Decision Happened NoOp ObjectRef PatchType Plan Reason ResourceEvent Step Verb"
    functions = "get in_order may not_for_step objects_of"
    imported = [reaction.constant, *sorted([*names.split(), reaction.view]), *functions.split()]
    return {
        "name": name,
        "service": name.replace("_", "-"),
        "summary": summary,
        "summary_sentence": summary[0].upper() + summary[1:],
        "event_sentence": (
            f"The {reaction.event} of the recording `{reaction.recording}`, at `{reaction.moment}`"
        ),
        "kind": resource.kind,
        "group": resource.group,
        "plural": resource.plural,
        "change": reaction.change,
        "happened": reaction.change.upper(),
        "constant": reaction.constant,
        "view": reaction.view,
        "not_ready": f'    if {reaction.not_ready}:\n        return NoOp("NotReady")\n'
        if reaction.not_ready
        else "",
        "labels": labels,
        "listed_labels": f', labels="{labels}"' if labels else "",
        "source": "- source.yaml\n" if labels else "",
        "imports": "\n".join(f"    {imported_name}," for imported_name in imported),
        "api_version_filter": f"prefix: {{apiversion: {resource.group}/}}"
        if resource.group
        else "exact: {apiversion: v1}",
        "version": version("muster-gangs"),
    }


def _write_case(folder: Path, reaction: EventKind) -> None:
    """Write the recorded event, the objects of its moment, and the plan of the new step for them."""
    recorded = shipped(reaction.recording).case(reaction.event, moment=reaction.moment)
    objects = slim(recorded.objects)
    case = Case.of(slim_event(recorded.event), objects)
    target = folder / "tests/case"
    target.mkdir(parents=True, exist_ok=True)
    (target / EVENT_FILE).write_text(json.dumps(envelope(case.event), indent=2) + "\n")
    documents = {"apiVersion": "v1", "kind": "List", "items": objects}
    (target / OBJECTS_FILE).write_text(yaml.dump(documents, Dumper=SafeDumper, sort_keys=False, width=110))
    (target / "plan.yaml").write_text(plan_of(load_step(folder), case).as_yaml())

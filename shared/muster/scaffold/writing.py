"""Writing the folder of a new step from the templates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from string import Template

import yaml

from muster.objects.yaml_files import SafeDumper
from muster.scaffold.reactions import EventKind
from muster.testing.cases import EVENT_FILE, OBJECTS_FILE, Case, envelope
from muster.testing.manifests import load_step
from muster.testing.planning import plan_of
from muster.testing.recordings import shipped, slim, slim_event

TEMPLATES = Path(__file__).parent / "templates"
_SOURCE = "source.yaml.txt"
"""Only for events that Muster's own sources do not send."""
CASE_FOLDER = "tests/case"
_LINE = 110


def write_step(folder: Path, reaction: EventKind) -> list[Path]:
    """Write a step that marks the objects of a reaction, with manifests and tests that pass.

    Args:
        folder: the folder to create; its name is that of the step, `label_racks`.
        reaction: what the step reacts to.

    Returns:
        The files, relative to the folder, in alphabetical order.

    Raises:
        FileExistsError: the folder exists.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True)
    values = _values(folder.name, reaction)
    for template in sorted(TEMPLATES.rglob("*.txt")):
        if template.name == _SOURCE and not reaction.labels:
            continue
        path = folder / str(template.relative_to(TEMPLATES)).removesuffix(".txt").replace("name", folder.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(template.read_text()).substitute(values))
    _write_case(folder, reaction)
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _values(name: str, reaction: EventKind) -> dict[str, str]:
    resource = reaction.resource
    versions = f"prefix: {{apiversion: {resource.group}/}}" if resource.group else "exact: {apiversion: v1}"
    not_ready = (
        f'    if {reaction.not_ready}:\n        return NoOp("NotReady")\n' if reaction.not_ready else ""
    )
    summary = reaction.summary
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
        "not_ready": not_ready,
        "labels": reaction.labels,
        "listed_labels": f', labels="{reaction.labels}"' if reaction.labels else "",
        "source": "- source.yaml\n" if reaction.labels else "",
        "imports": "\n".join(_imports(reaction)),
        "api_version_filter": versions,
        "version": version("muster-gangs"),
    }


def _imports(reaction: EventKind) -> Iterator[str]:
    names = (
        *("Action", "Cluster", "Decision", "Happened", "NoOp", "ObjectRef", "PatchType", "Plan", "Reason"),
        *("ResourceEvent", "Step", "Verb", reaction.view),
    )
    functions = ("get", "in_order", "may", "not_for_step", "objects_of")
    yield from (f"    {name}," for name in (reaction.constant, *sorted(names), *functions))


def _write_case(folder: Path, reaction: EventKind) -> None:
    """Write the recorded event, the objects of its moment, and the plan of the new step for them."""
    recorded = shipped(reaction.recording).case(reaction.event, moment=reaction.moment)
    objects = slim(recorded.objects)
    case = Case.of(slim_event(recorded.event), objects)
    target = folder / CASE_FOLDER
    target.mkdir(parents=True, exist_ok=True)
    (target / EVENT_FILE).write_text(json.dumps(envelope(case.event), indent=2) + "\n")
    documents = {"apiVersion": "v1", "kind": "List", "items": objects}
    (target / OBJECTS_FILE).write_text(yaml.dump(documents, Dumper=SafeDumper, sort_keys=False, width=_LINE))
    (target / "plan.yaml").write_text(plan_of(load_step(folder), case).as_yaml())

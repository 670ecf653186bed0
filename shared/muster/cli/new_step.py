"""`muster new-step`: write the folder of a step of one's own, with manifests and a test."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from string import Template

import click
import yaml

from muster.cli.common import BadInput
from muster.data import EVENTING
from muster.objects import yaml_files
from muster.objects.resources import JOBS, POD_GROUPS, PODS, TRAINJOBS, WORKLOADS, Resource
from muster.objects.yaml_files import SafeDumper
from muster.runtime.steps import step_names
from muster.testing.cases import EVENT_FILE, OBJECTS_FILE, Case, envelope, plan_of
from muster.testing.manifests import load_step
from muster.testing.recordings import shipped, slim, slim_event

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,50}[a-z0-9])?")
"""A name of Kubernetes, short enough for the Service of a function and its revisions."""
_KUBERNETES = frozenset({"admin", "cluster-admin", "default", "edit", "view"})
"""The ClusterRoles for users (bootstrappolicy, v1.37.1), and the service account that each namespace has."""
_TEMPLATES = Path(__file__).parent / "templates"
_SOURCE = "source.yaml.txt"
"""Only for events that Muster's own sources do not send."""


@dataclass(frozen=True)
class EventKind:
    """An event that a new step reacts to.

    Attributes:
        moment, recording: at which the step acts, and with such an event.
        not_ready: when the step does nothing, as Python about `found`; "" if it always acts.
        labels: the selector of the step's own source and sweeps; "" where Muster's sources send the kind.
    """

    summary: str
    resource: Resource
    change: str
    moment: str
    recording: str = "torch"
    not_ready: str = ""
    labels: str = ""

    @property
    def event(self) -> str:
        """Kind and change, `PodGroup update`."""
        return f"{self.resource.kind} {self.change}"


REACTIONS: Mapping[str, EventKind] = {
    "podgroup-created": EventKind("a PodGroup was created", POD_GROUPS, "add", "before patch_pods"),
    "podgroup-bound": EventKind(
        "the scheduler has placed a PodGroup",
        POD_GROUPS,
        "update",
        "all bound",
        not_ready="not found.placed",
    ),
    "podgroup-waiting": EventKind(
        "the scheduler has no room for a PodGroup",
        POD_GROUPS,
        "update",
        "unschedulable",
        "does-not-fit",
        not_ready="found.refused_at is None",
    ),
    "workload-created": EventKind(
        "a Workload was created",
        WORKLOADS,
        "add",
        "before create_pod_groups",
        labels="muster.dev/owner-uid",
    ),
    "pod-bound": EventKind(
        "a pod with a group label has a node",
        PODS,
        "update",
        "all bound",
        not_ready="not found.bound",
        labels="muster.dev/group",
    ),
    "job-created": EventKind("a Job was created", JOBS, "add", "before create_workload", "job-scaled"),
    "trainjob-created": EventKind("a TrainJob was created", TRAINJOBS, "add", "before create_workload"),
}
"""By the value of --on."""

_VIEWS = {"PodGroup", "Workload", "Pod"}
"""The kinds that have a public view of their own."""
_LIST = "\n".join(f"    {name:<18}{reaction.summary}" for name, reaction in REACTIONS.items())


@click.command(
    "new-step",
    help=f"""Write the folder of a new step: code, manifests, and a test on a recorded event.

    NAME is that of its Service, such as label-racks; the folder is called label_racks. The step works as it
    is: it annotates each object that it reacts to. Replace its plan by what it is for. Events to react to:

    \b
{_LIST}
    """,
)
@click.argument("name")
@click.option(
    "--on", "event", required=True, type=click.Choice(list(REACTIONS)), help="The event that it reacts to."
)
def command(name: str, event: str) -> None:
    """Write the folder; the help text is in the decorator because it lists the events."""
    if not _NAME.fullmatch(name.replace("_", "-")):
        raise BadInput(
            f"{name!r} cannot be the name of a Service: lower-case letters, digits and dashes, up to 52"
        )
    if owner := owner_of(name.replace("_", "-")):
        raise BadInput(f"{name!r} is a name of {owner}'s, whose objects a step of that name would replace")
    folder = Path(name.replace("-", "_"))
    try:
        files = write_step(folder, REACTIONS[event])
    except FileExistsError:
        raise BadInput(f"{folder}: exists already") from None
    for path in files:
        click.echo(folder / path)
    case = folder / "tests" / "case"
    click.echo(f"""
pytest {folder}                   # its tests: pip install 'muster-gangs[testing]'
muster plan {folder} --event {case / EVENT_FILE} --objects {case / OBJECTS_FILE}
muster run --overlay {folder}     # on the local stack, beside Muster's own steps""")


def owner_of(service: str) -> str:
    """Return whose objects of that name a step would replace: `Muster`, `Kubernetes` or ""."""
    if service in _KUBERNETES:
        return "Kubernetes"
    functions = {"muster", "dead-letter", *(name.replace("_", "-") for name in step_names())}
    if service.startswith("muster-") or service in functions | _names_in_eventing():
        return "Muster"
    return ""


@cache
def _names_in_eventing() -> set[str]:
    """Return the names of all objects in eventing/, whichever overlay has them."""
    paths = [path for path in EVENTING.rglob("*.yaml") if not path.is_relative_to(EVENTING / "examples")]
    documents = [document for path in paths for document in yaml_files.load_all(path.read_text())]
    return {(one.get("metadata") or {}).get("name", "") for one in documents if isinstance(one, dict)}


def write_step(folder: Path, reaction: EventKind) -> list[Path]:
    """Write a step that marks the objects of a reaction, with manifests and tests that pass.

    The files are returned relative to the folder, which has the name of the step, `label_racks`.

    Raises:
        FileExistsError: the folder exists.
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
    view = resource.kind if resource.kind in _VIEWS else "KubernetesObject"
    constant = "POD_GROUPS" if resource is POD_GROUPS else resource.plural.upper()
    names = "Action Cluster Decision Happened NoOp ObjectRef PatchType Plan Reason ResourceEvent Step Verb"
    functions = "get in_order may not_for_step objects_of"
    imported = [constant, *sorted([*names.split(), view]), *functions.split()]
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
        "constant": constant,
        "view": view,
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

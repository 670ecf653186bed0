"""`muster plan`: print what a function would do, without any server."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import ValidationError

from muster.cli.common import BadInput, echo_data, errors_as_bad_input
from muster.cluster.observe.snapshot import Snapshot
from muster.events.parse import Sweep, UnreadableEvent, parse
from muster.policy.model import NoOp
from muster.replay.files import BadFileError, RecordedRequest, read_events, time_of
from muster.replay.plans import Document, as_yaml, decisions, to_document
from muster.replay.replay import event_of
from muster.replay.snapshots import Objects, choose_for, objects_of_events, read_snapshots
from muster.runtime import steps
from muster.runtime.http.responses import first_fault
from muster.runtime.step import Step
from muster.simulator.typed import first_type_fault


@click.command("plan")
@click.argument("function")
@click.option(
    "--event",
    "event_file",
    required=True,
    type=click.Path(path_type=Path),
    help="One structured CloudEvent, as JSON or YAML; of a recording its first that FUNCTION handles.",
)
@click.option(
    "--objects",
    "object_files",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="YAML or JSON file of the cluster's objects and Lists; repeatable.",
)
@click.option(
    "--moment", default="", help="Moment of a recording; default: the first with the object of the event."
)
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="Format.")
def command(
    function: str, event_file: Path, object_files: tuple[Path, ...], moment: str, output: str
) -> None:
    """Print what FUNCTION would do about an event, with the cluster's objects from files.

    Nothing is written, no server is asked, and the time is the event's. FUNCTION is one of Muster's,
    create_workload or create-workload, or the folder of a step of your own, with function/step.py. One YAML
    document is printed, for a sweep one for each object that it examines; with -o json all in one array:

    \b
        function: create_workload
        outcome: Plan            # or Nothing
        reason: WorkloadCreated
        actions:
        - {verb, apiVersion, kind, namespace, name, body}

    A write to the status has `subresource: status` as well; a deletion has no body.
    """  # noqa: D301 - click does not wrap a paragraph after \b
    with errors_as_bad_input():
        step = steps.find_step(function)
        request = _event_of(step, event_file)
        named = objects_of_events([request], owners_only=False)
        snapshot = choose_for(named, read_snapshots(object_files), moment)
        plans = _plans(step, request, snapshot.objects)
    if not plans:
        click.echo(f"a sweep of {step.name} has no objects", err=True)
    elif output == "json":
        echo_data(plans, output)
    else:
        click.echo(as_yaml(plans), nl=False)


def _event_of(step: Step, path: Path) -> RecordedRequest:
    """Return the event of a file; of several the first that the step handles, which is named on stderr.

    Raises:
        BadInput: there are several, and none is for the step.
    """
    requests = read_events(path)
    if len(requests) == 1:
        return requests[0]
    for request in requests:
        event = parse(request.headers, request.body)
        if isinstance(event, Sweep) or not isinstance(step.subject_of(event), NoOp):
            recorded = event_of(request)
            click.echo(f"{request.location}: {recorded['type']} {recorded['subject']}", err=True)
            return request
    raise BadInput(f"{path}: none of the {len(requests)} events is for {step.name}")


def _plans(step: Step, request: RecordedRequest, objects: Objects) -> list[Document]:
    """Return the plans of a step for an event: one document, or one per object that a sweep looks at."""
    if wrong := first_type_fault(objects):
        raise BadFileError(*wrong)
    for body in objects:
        body["metadata"].setdefault("uid", "")
    now = time_of(request)
    try:
        found = decisions(step, request, Snapshot(objects), now)
        return [to_document(step, decision) for decision in found]
    except UnreadableEvent as error:
        raise BadFileError(request.location, str(error)) from None
    except ValidationError as error:
        path, message = first_fault(error)
        raise BadFileError(f"{request.location}: data: {path}", message) from None

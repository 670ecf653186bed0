"""`muster plan`: what a function would do, without any server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from muster import steps
from muster.cli.bad_input import BadInput, told_in_one_line
from muster.operator import planning
from muster.replay import snapshots as worlds
from muster.replay.recorded_requests import Capture, read_events, time_of

_EPOCH = datetime.fromtimestamp(0, UTC)


@click.command("plan")
@click.argument("function")
@click.option(
    "--event",
    "event_file",
    required=True,
    type=click.Path(path_type=Path),
    help="One CloudEvent: structured, as JSON or YAML, or a captured request {headers, body}.",
)
@click.option(
    "--objects",
    "object_files",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="The cluster: a YAML or JSON file of objects and Lists. May be given several times.",
)
@click.option("--moment", default="", help="Which moment of a recording; the first where none is named.")
@click.option(
    "--now",
    "now_text",
    default="",
    metavar="TIME",
    help="The time in conditions and Events, ISO 8601; the event's own time where none is given, else 1970.",
)
def command(
    function: str, event_file: Path, object_files: tuple[Path, ...], moment: str, now_text: str
) -> None:
    """Print what FUNCTION would do about an event in a cluster that stands in files.

    Nothing is written and no server is asked. FUNCTION is a folder of functions/, create_workload or
    create-workload. One YAML document is printed, for a sweep one for each object it looks at:

    \b
        function: create_workload
        outcome: Plan            # or Nothing
        reason: WorkloadCreated
        actions:
        - {verb, apiVersion, kind, namespace, name, body}

    A write to the status has `subresource: status` as well; a deletion has no body.
    """  # noqa: D301 - \b is click's mark of a paragraph that is left as it is
    with told_in_one_line():
        step = steps.step_named(function)
        capture = _only(event_file, read_events(event_file))
        world = worlds.choose(worlds.read_worlds(object_files), moment, worlds.first)
        now = _time(now_text) if now_text else time_of(capture, _EPOCH)
        documents = planning.plan_on(step, capture, world.objects, now)
    if not documents:
        click.echo(f"a sweep of {step.name} has nothing to look at", err=True)
        return
    click.echo(planning.as_yaml(documents), nl=False)


def _only(path: Path, captures: list[Capture]) -> Capture:
    if len(captures) > 1:
        raise BadInput(f"{path}: holds {len(captures)} events; plan takes one, replay takes many")
    return captures[0]


def _time(text: str) -> datetime:
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"--now {text}: is no time such as 2026-11-21T08:17:25Z") from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)

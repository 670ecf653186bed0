"""`muster new-step`: write the folder of a step of one's own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from muster.cli.common import BadInput, CommandError
from muster.scaffold import REACTIONS, owner_of, write_step

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,50}[a-z0-9])?")
"""A name of Kubernetes, short enough for the Service of a function and its revisions."""

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
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder in which the step's folder is written; default: this one.",
)
def command(name: str, event: str, into: Path) -> None:
    """Write the folder; the help text is in the decorator because it lists the events."""
    if not _NAME.fullmatch(name.replace("_", "-")):
        raise BadInput(
            f"{name!r} cannot be the name of a Service: lower-case letters, digits and dashes, up to 52"
        )
    if owner := owner_of(name.replace("_", "-")):
        raise BadInput(f"{name!r} is a name of {owner}'s, whose objects a step of that name would replace")
    folder = into / name.replace("-", "_")
    try:
        files = write_step(folder, REACTIONS[event])
    except FileExistsError:
        raise BadInput(f"{folder}: exists already") from None
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}") from None
    for path in files:
        click.echo(folder / path)
    step, case = shlex.quote(str(folder)), folder / "tests" / "case"
    case_event, objects = (shlex.quote(str(case / name)) for name in ("event.json", "cluster.yaml"))
    click.echo(f"""
pytest {step}                   # its tests: pip install 'muster-gangs[testing]'
muster plan {step} --event {case_event} --objects {objects}
muster run --overlay {step}     # on the local stack, beside Muster's own steps""")

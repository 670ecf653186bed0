"""The option --overlay of commands that run the steps of a kustomization folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import yaml

from muster import steps
from muster.cli.arguments import BadInput, errors_as_bad_input
from muster.kustomize import CLUSTER, UnsupportedManifestError, load_beside_muster, step_files
from muster.simulator.broker import Wiring
from muster.simulator.typed import first_type_fault


def overlay_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option --overlay with a help text: a kustomization folder, by default Muster's own."""
    kind = click.Path(path_type=Path, exists=True, file_okay=False)
    return click.option("--overlay", type=kind, default=CLUSTER, callback=_check_overlay, help=text)


def _check_overlay(_context: click.Context, _option: click.Parameter, folder: Path) -> Path:
    """Return the folder, if it is a kustomization that can be run here: every trigger leads to a step."""
    try:
        objects = load_beside_muster(folder)
        if wrong := first_type_fault(objects):
            raise BadInput(f"--overlay {folder}: {': '.join(wrong)}")
        wiring, own = Wiring.from_manifests(objects), step_files(folder)
    except FileNotFoundError as error:
        raise BadInput(f"--overlay: {error.filename}: No such file") from None
    except UnsupportedManifestError as error:
        raise BadInput(f"--overlay: {error}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"--overlay {folder}: a file is not YAML: {' '.join(str(error).split())}") from None
    with errors_as_bad_input():
        for service, path in own.items():
            name = steps.load_step(path).name
            if name.replace("_", "-") != service:
                raise LookupError(f"{path}: the step {name!r} must have the name of its folder, {service!r}")
        for trigger in wiring.triggers:
            if trigger.subscriber not in own:
                steps.step_file(trigger.subscriber.rpartition("/")[2])
    return folder

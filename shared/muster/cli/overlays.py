"""The option --overlay of commands that run the steps of a manifest or of a kustomization folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from muster.cli.common import BadInput, errors_as_bad_input
from muster.runtime import steps
from muster.simulator.broker import Wiring
from muster.simulator.overlays import (
    CLUSTER,
    UnsupportedManifestError,
    load_beside_muster,
    of_kind,
    step_files,
)
from muster.simulator.source import SourceSpec
from muster.simulator.typed import first_type_fault


def overlay_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option --overlay with a help text: a manifest or folder, by default Muster's own."""
    kind = click.Path(path_type=Path, exists=True)
    return click.option("--overlay", type=kind, default=CLUSTER, callback=_check_overlay, help=text)


def _check_overlay(_context: click.Context, _option: click.Parameter, overlay: Path) -> Path:
    """Return the path, if it can be run here: every trigger leads to a step."""
    try:
        objects = load_beside_muster(overlay)
        if wrong := first_type_fault(objects):
            raise BadInput(f"--overlay {overlay}: {': '.join(wrong)}")
        wiring, own = Wiring.from_manifests(objects), step_files(overlay)
        for source in of_kind(objects, "ApiServerSource"):
            SourceSpec.from_manifest(source)
    except UnsupportedManifestError as error:
        raise BadInput(f"--overlay: {error}") from None
    with errors_as_bad_input():
        for service, path in own.items():
            name = steps.load_step(path).name
            if name.replace("_", "-") != service:
                raise LookupError(f"{path}: the step {name!r} must have the name of its folder, {service!r}")
        for trigger in wiring.triggers:
            if trigger.subscriber not in own:
                steps.step_file(trigger.subscriber.rpartition("/")[2])
    return overlay

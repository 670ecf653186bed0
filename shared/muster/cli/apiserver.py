"""`muster apiserver`: serve the embedded API server alone."""

from __future__ import annotations

from pathlib import Path

import click

from muster.cli.output import CommandError, echo
from muster.simulator.apiserver.server import serve


@click.command("apiserver")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 for any free port."
)
@click.option(
    "--kubeconfig-out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a kubeconfig to this file.",
)
@click.option("--release", type=click.Choice(["1.37", "1.36"]), default="1.37", show_default=True)
def command(port: int, kubeconfig_out: Path | None, release: str) -> None:
    """Serve the embedded API server until Ctrl-C, without any controller.

    Its URL is printed once it answers. It listens on this machine only and asks nobody for credentials.
    JobSet's and the Trainer's kinds are served beside Kubernetes' own.
    """
    try:
        serve(port, release, kubeconfig_out, echo)
    except OSError as error:
        raise CommandError(f"{error.filename or f'port {port}'}: {error.strerror}") from None

"""`muster apiserver`: serve the embedded API server alone."""

from __future__ import annotations

from pathlib import Path

import click

from muster.cli.common import BadInput, CommandError
from muster.objects.text import counted
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.apiserver.server import serve
from muster.simulator.manifests import ManifestError, load


@click.command("apiserver")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 for any free port."
)
@click.option(
    "--kubeconfig-out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a kubeconfig to this file.",
)
@click.option(
    "--load",
    "paths",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Apply the objects in these manifests before serving; may be given several times.",
)
@click.option("--release", type=click.Choice(["1.37", "1.36"]), default="1.37", show_default=True)
def command(port: int, kubeconfig_out: Path | None, paths: tuple[Path, ...], release: str) -> None:
    """Serve the embedded API server until Ctrl-C, without any controller.

    Its URL is printed once it answers. It listens on this machine only, asks nobody for credentials, and runs
    no containers: logs, exec and port-forward are answered with 501. JobSet's and the Trainer's kinds are
    served beside Kubernetes' own, and those of CustomResourceDefinitions.

    --load takes admission policies, CustomResourceDefinitions and any object of a kind that is served. They
    are validated and pass admission; definitions come first, then policies, then all others.
    """
    server = ApiServer(port=port, release=release)
    server.load(resource_definitions())

    def announce(url: str) -> None:
        if kubeconfig_out is not None:
            kubeconfig_out.write_text(server.kubeconfig())
        click.echo(url)

    try:
        if paths:
            click.echo(f"{counted(load(server, paths), 'object')} loaded", err=True)
        serve(server, announce)
    except ManifestError as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or f'port {port}'}: {error.strerror}") from None

"""The command `muster`; a subcommand is imported only when it is called, so that `apiserver` starts fast."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "apiserver": "Serve the embedded API server alone.",
    "check": "Tell whether a cluster is fit for Muster, or whether Muster may be taken away.",
    "explain": "Tell why a job is grouped as it is, or is not.",
    "plan": "Print what a function would do about an event, without any server.",
    "record": "Record events into a file, from a cluster or from whoever sends them.",
    "redrive": "List events that no function took, or send them again.",
    "replay": "Run recorded events through the functions, against the embedded API server.",
    "run": "Run the whole local stack and watch gangs being scheduled.",
    "status": "Tell what waits in a cluster, since when, and why.",
}


class _Subcommands(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"muster.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muster-gangs")
def main() -> None:
    """Gang scheduling for Kubernetes jobs: try it, plan it, replay it, on this machine."""

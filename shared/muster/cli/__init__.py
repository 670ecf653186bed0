"""The command `muster`; a subcommand is imported only when it is called, so that `apiserver` starts fast."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "apiserver": "Serve the embedded API server alone.",
    "check": "Check whether a cluster is ready for Muster, or whether Muster can be uninstalled.",
    "explain": "Explain which groups a job gets, and why.",
    "new-step": "Write the folder of a step of your own, with manifests and a test.",
    "plan": "Print a function's plan for an event, without a server.",
    "record": "Record events of a cluster, or events sent to a port, into a file.",
    "redrive": "List events that no function accepted, or send them again.",
    "replay": "Replay recorded events through the functions, on the embedded API server.",
    "run": "Run the whole local stack and watch gangs being scheduled.",
    "status": "List what waits in a cluster, since when, and why.",
}


class _Subcommands(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"muster.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muster-gangs")
def main() -> None:
    """Gang scheduling for Kubernetes jobs: try it, plan it, replay it, on this machine."""

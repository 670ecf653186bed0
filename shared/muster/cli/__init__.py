"""The command `muster`; a subcommand is imported only when it is called, so that `apiserver` starts fast."""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

COMMANDS = {
    "apiserver": "Serve the embedded API server alone.",
    "check": "Check whether a cluster is ready for Muster, or whether Muster can be uninstalled.",
    "explain": "Explain how a job is grouped, why, and what it waits for; or a pod, group or policy.",
    "lint": "Check policies and group labels in manifests, for CI.",
    "new-step": "Write the folder of a step of your own, with manifests and a test.",
    "plan": "Print a function's plan for an event, without a server.",
    "record": "Record the events of a cluster into a file.",
    "redrive": "List events that no function accepted, or send them again.",
    "replay": "Replay recorded events through the functions, on the embedded API server.",
    "run": "Run the whole local stack and watch gangs being scheduled.",
    "status": "List what waits in a cluster, since when, and why.",
}

INTERRUPTED = 128 + signal.SIGINT
"""The exit status after Ctrl-C, as a shell has it."""


class _Subcommands(click.Group):
    """A group that lists its commands without importing them, and prints errors as one line."""

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

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and exit: 0, 1 if it failed, 2 for bad input."""
        # Libraries log connection errors, which the commands report in their own words.
        logging.getLogger().addHandler(logging.NullHandler())
        try:
            code = super().main(args, *rest, **{**options, "prog_name": "muster", "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            text = " ".join(error.format_message().split())
            if isinstance(error, click.UsageError):
                path = error.ctx.command_path if error.ctx else "muster"
                text = f"{text.removesuffix('.')}; see {path} --help"
            click.echo(f"muster: {text}", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except OSError as error:
            if error.filename is None:
                raise
            click.echo(f"muster: {error.filename}: {error.strerror}", err=True)
            sys.exit(2)
        sys.exit(code if isinstance(code, int) else 0)


@click.command("muster", cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muster-gangs")
def main() -> None:
    """Gang scheduling for Kubernetes jobs: try it, plan it, replay it, on this machine."""

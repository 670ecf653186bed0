"""The command `muster`; a subcommand is imported only when it is called, so that `apiserver` starts fast."""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

GROUPS = {
    "Try": {
        "run": "Show what gangs are for, or run stories, on this machine.",
    },
    "Operate": {
        "get": "List gangs: groups placed, pods bound, nodes, and why a gang waits; live with -w.",
        "status": "List what waits in a cluster, since when, and why.",
        "view": "Show gangs, nodes and what happened on a page in your browser, live or of a recording.",
        "explain": "Explain how a job is grouped, why, and what it waits for; or a pod, group or policy.",
        "check": "Check whether a cluster is ready for Muster, or whether Muster can be uninstalled.",
        "lint": "Check policies and group labels in manifests, for CI.",
        "redrive": "List events that no function accepted, or send them again.",
    },
    "Develop": {
        "new-step": "Write the folder of a step of your own, with manifests and a test.",
        "plan": "Print a function's plan for an event, without a server.",
        "record": "Record the events of a cluster into a file.",
        "replay": "Replay recorded events through the functions, on the embedded API server.",
        "apiserver": "Serve the embedded API server alone.",
    },
}
COMMANDS = {name: text for commands in GROUPS.values() for name, text in commands.items()}

EXAMPLES = """\b
Examples:
  muster run                      two Jobs without gangs and with them, on this machine
  muster get -A                   every gang of your cluster
  muster explain job/llama        why it waits, and what comes next
  muster replay incident.jsonl    what the functions make of a recording
"""

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
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=12)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of these arguments; of one that does not exist, similar names are listed."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=error.ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with a text, without importing them."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(item for item in names if item.value.startswith(incomplete)), *options]

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and exit: 0, 1 if it failed, 2 for bad input."""
        # Libraries log connection errors, which the commands report in their own words.
        logging.getLogger().addHandler(logging.NullHandler())
        # kubectl runs what is called kubectl-muster for `kubectl muster`.
        program = "kubectl muster" if Path(sys.argv[0]).name.startswith("kubectl-") else "muster"
        try:
            code = super().main(args, *rest, **{**options, "prog_name": program, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            text = " ".join(error.format_message().split())
            if isinstance(error, click.UsageError):
                path = error.ctx.command_path if error.ctx else program
                text = (
                    f"{text} See {path} --help"
                    if text.endswith("?")
                    else f"{text.removesuffix('.')}; see {path} --help"
                )
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


@click.command(
    "muster",
    cls=_Subcommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
@click.version_option(package_name="muster-gangs")
def main() -> None:
    """Gang scheduling for Kubernetes jobs: look at gangs of a cluster, or try them on this machine."""

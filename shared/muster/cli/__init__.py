"""The command `muster`; a subcommand is imported only when it is called, so that `apiserver` starts fast."""

from __future__ import annotations

import errno
import importlib
import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from muster.cli.output import CommandError, echo_line
from muster.objects.text import cut_to

COMMANDS = {
    "apiserver": "Serve the embedded API server alone.",
    "check": "Check whether a cluster is ready for Muster, or whether Muster can be uninstalled.",
    "explain": "Explain how a job is grouped, why, and what it waits for; or a pod, group or policy.",
    "lint": "Check policies and group labels in manifests, for CI.",
    "new-step": "Write the folder of a step of your own, with manifests and a test.",
    "plan": "Print a function's plan for an event, without a server.",
    "record": "Record events of a cluster, or events sent to a port, into a file.",
    "redrive": "List events that no function accepted, or send them again.",
    "replay": "Replay recorded events through the functions, on the embedded API server.",
    "run": "Run the whole local stack and watch gangs being scheduled.",
    "status": "List what waits in a cluster, since when, and why.",
}

INTERRUPTED = 128 + signal.SIGINT
"""The exit status after Ctrl-C, as a shell has it."""

BUG = 70
"""The exit status of a bug in Muster (EX_SOFTWARE of sysexits.h)."""

PIPE_CLOSED = 141
"""The exit status when the reader of the output, such as `head`, has gone: 128 + SIGPIPE."""

BAD_FILE = 2
"""The exit status for a file that cannot be opened, as for all bad input."""

TRACEBACK = "MUSTER_TRACEBACK"
"""The environment variable with which the stack trace of a bug is printed."""


_NO_THREAD = "can't start new thread"
"""The error of Python where memory or the number of processes allows no further thread."""

_ERROR_LENGTH = 6000
"""The most characters of an error that are shown; it may name a key or value of a file."""


class _ReaderGoneError(Exception):
    """The reader of the output has gone; click would exit with 1 for BrokenPipeError."""


class _Subcommands(click.Group):
    """A group that lists its commands without importing them, and prints every error as one line."""

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

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command of the arguments.

        Raises:
            _ReaderGoneError: in place of BrokenPipeError.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGoneError from None

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and exit: 0, 1 if it failed, 2 for bad input, else one of the above."""
        # Libraries log connection errors, which the commands report in their own words.
        logging.getLogger().addHandler(logging.NullHandler())
        try:
            _require_output()
            _escape_what_the_terminal_cannot_show()
            code = super().main(args, *rest, **{**options, "prog_name": "muster", "standalone_mode": False})
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:  # noqa: TID251 - those of click too
            _show(error)
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except (BrokenPipeError, _ReaderGoneError):
            _discard_output()
            sys.exit(PIPE_CLOSED)
        except (ModuleNotFoundError, MemoryError):  # the entry point says what is missing or too little
            raise
        except OSError as error:
            sys.exit(_report_os_error(error))
        except Exception as error:  # noqa: BLE001 - a person gets one line, also of a bug
            sys.exit(report_unforeseen(error))
        sys.exit(code if isinstance(code, int) else 0)


def _show(error: click.ClickException) -> None:  # noqa: TID251 - likewise
    """Print an error as one line; where arguments are wrong, with the command that explains them."""
    text = error.format_message()
    if isinstance(error, click.BadParameter) and error.param and error.ctx and error.message:
        name = error.param.get_error_hint(error.ctx).replace("'", "")
        text = f"{name}: {error.message}"
    text = _one_line(text)
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "muster"
        text = f"{text.removesuffix('.')}; see {path} --help"
    echo_line(f"muster: {text}", err=True)


def _one_line(text: str) -> str:
    return " ".join(cut_to(text, _ERROR_LENGTH).split())


def _require_output() -> None:
    """Refuse a closed standard output."""
    if sys.stdout is None:  # `muster lint a.yaml >&-`
        raise CommandError("standard output is closed")


def _escape_what_the_terminal_cannot_show() -> None:
    """Have characters that the encoding of the output lacks, such as a tick in ASCII, written as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _report_os_error(error: OSError) -> int:
    """Print a failure of the system and return the exit status; one without a file may be a bug."""
    if isinstance(error.filename, str):
        # A file that was typed, with a name that is too long, or in a folder of others.
        echo_line(f"muster: {cut_to(error.filename, 400)}: {error.strerror}", err=True)
        return BAD_FILE
    if error.errno == errno.ENOSPC:
        _discard_output()
        echo_line(f"muster: {error.strerror}", err=True)
        return 1
    return report_unforeseen(error)


def _discard_output() -> None:
    """Write the rest of the output to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_unforeseen(error: Exception) -> int:
    """Print an exception that nobody caught in one line, and return the exit status.

    It is a bug, of which MUSTER_TRACEBACK prints the trace, or says that no further thread can be started.
    """
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        echo_line("muster: no further thread can be started: memory or processes are limited", err=True)
        return 1
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
        return BUG
    places = traceback.extract_tb(error.__traceback__)
    where = f"{places[-1].filename}:{places[-1].lineno}" if places else "no trace"
    text = _one_line(f"{type(error).__name__}: {error}")
    echo_line(f"muster: this is a bug: {text} ({where}); {TRACEBACK}=1 prints its trace", err=True)
    return BUG


@click.command("muster", cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muster-gangs")
def main() -> None:
    """Gang scheduling for Kubernetes jobs: try it, plan it, replay it, on this machine."""

"""docs/cli.md, made from the commands themselves.

python -m tests.docs.cli_reference     writes it anew; `make golden-update` does so too
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from muster.cli import COMMANDS, main

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
WIDTH = 120
HEADER = """\
# The command `muster`

Written by `make golden-update` from the commands: `muster COMMAND --help` prints the same.
Commands on a real cluster take `--kubeconfig` and `--context`, and find it as kubectl does without them.
What the exit statuses mean: [operations](operations.md).
"""


def page() -> str:
    """Return the page."""
    names = "\n".join(f"| [{name}](#muster-{name}) | {summary} |" for name, summary in COMMANDS.items())
    table = f"| command | what it does |\n|---|---|\n{names}\n"
    return "\n".join([HEADER, table, *(_section(name) for name in COMMANDS)])


def _section(name: str) -> str:
    context = click.Context(main, info_name="muster")
    command = main.get_command(context, name)
    assert command is not None
    own = click.Context(command, info_name=name, parent=context)
    usage = " ".join([own.command_path, *command.collect_usage_pieces(own)])
    rows = "\n".join(f"| `{option}` | {text} |" for option, text in _options(command, own))
    options = f"| option | meaning |\n|---|---|\n{rows}\n" if rows else ""
    return f"## muster {name}\n\n```text\n{usage}\n```\n\n{_paragraphs(command.help or '')}\n{options}"


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield each option and its meaning as --help shows them, without --help itself."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and "--help" not in record[0]:
            yield record[0].replace("|", "\\|"), record[1]


def _paragraphs(text: str) -> str:
    """Return the text of a command as lines of the page; click's preformatted paragraphs stay as they are."""
    shown = []
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        if paragraph.startswith("\b"):
            shown.append(f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```\n")
        else:
            shown.append(textwrap.fill(" ".join(paragraph.split()), WIDTH) + "\n")
    return "\n".join(shown)


if __name__ == "__main__":
    PAGE.write_text(page())

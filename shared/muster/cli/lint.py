"""`muster lint`: check policies and group labels in manifests, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from muster.cli.arguments import BadInput, path_of
from muster.cli.output import echo_items, output_option
from muster.operator.explain.files import DEFAULT_NAMESPACE
from muster.operator.lint import Fault, LintResult, Severity, lint

_SUFFIXES = {".yaml", ".yml", ".json"}


@click.command("lint")
@click.argument("targets", metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option(
    "-n", "--namespace", default=DEFAULT_NAMESPACE, show_default=True, help="Of objects without one."
)
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@output_option("text", "json", "yaml", "github")
def command(targets: tuple[str, ...], namespace: str, output: str, *, strict: bool) -> None:
    """Check every policy and group label in manifests, and whether the groups of each job can be made.

    All FILEs, those in each FOLDER (.yaml, .yml and .json, at any depth) and - for standard input are checked
    as if they were applied together; no cluster is asked. -o github prints annotations for a workflow.

    Exits with 1 if there is an error, with --strict also for a warning.
    """
    files = _files(targets)
    result = lint(files, namespace)
    if output == "text":
        _print_text(result)
    elif output == "github":
        for fault in result.faults:
            click.echo(_annotation(fault))
    else:
        echo_items(map(asdict, result.faults), output)
    if result.count(Severity.ERROR) or (strict and result.faults):
        raise SystemExit(1)


def _files(targets: Sequence[str]) -> dict[Path, bool]:
    """Return the files, and whether each was found in a folder.

    Raises:
        BadInput: a target does not exist or cannot be searched, or there are no files.
    """
    files: dict[Path, bool] = {}
    for target in targets:
        path = path_of(target)
        if not path.exists():
            raise BadInput(f"{path}: No such file or folder")
        if not path.is_dir():
            files[path] = False
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        files |= {file: True for file in found if file not in files}
    if not files:
        raise BadInput(f"{', '.join(targets)}: has no file that ends in .yaml, .yml or .json")
    return files


def _print_text(result: LintResult) -> None:
    for fault in result.faults:
        click.echo(str(fault))
    errors, warnings = result.count(Severity.ERROR), result.count(Severity.WARNING)
    policies, jobs = _counted(result.policies, "policy", "policies"), _counted(result.owners, "job", "jobs")
    found = f"{_counted(errors, 'error', 'errors')}, {_counted(warnings, 'warning', 'warnings')}"
    click.echo(f"{policies} and {jobs} checked: {found}")


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _annotation(fault: Fault) -> str:
    """Return a workflow command: `::error file=...,title=...::message` (docs.github.com)."""
    message = f"{fault.object}: {fault.message}" if fault.object else fault.message
    properties = f"file={_property(fault.file)},title={_property(fault.reason)}"
    return f"::{fault.severity} {properties}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")

"""`muster lint`: check policies and group labels in manifests, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from muster.cli.common import BadInput, echo_data, output_option, path_of
from muster.operator.dry_run import DEFAULT_NAMESPACE
from muster.operator.lint import Severity, lint

_SUFFIXES = {".yaml", ".yml", ".json"}


@click.command("lint")
@click.argument("targets", metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option(
    "-n", "--namespace", default=DEFAULT_NAMESPACE, show_default=True, help="Of objects without one."
)
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@output_option
def command(targets: tuple[str, ...], namespace: str, output: str, *, strict: bool) -> None:
    """Check every policy and group label in manifests, and whether the groups of each job can be made.

    All FILEs, those in each FOLDER (.yaml, .yml and .json, at any depth) and - for standard input are checked
    as if they were applied together; no cluster is asked.

    Exits with 1 if there is an error, with --strict also for a warning.
    """
    result = lint(_files(targets), namespace)
    errors, warnings = result.count(Severity.ERROR), result.count(Severity.WARNING)
    if output == "text":
        for fault in result.faults:
            click.echo(str(fault))
        policies = _counted(result.policies, "policy", "policies")
        jobs = _counted(result.owners, "job", "jobs")
        found = f"{_counted(errors, 'error', 'errors')}, {_counted(warnings, 'warning', 'warnings')}"
        click.echo(f"{policies} and {jobs} checked: {found}")
    else:
        echo_data([asdict(fault) for fault in result.faults], output)
    if errors or (strict and result.faults):
        raise SystemExit(1)


def _files(targets: Sequence[str]) -> dict[Path, bool]:
    """Return the files, and whether each was found in a folder.

    Raises:
        BadInput: a target does not exist, or there are no files.
    """
    files: dict[Path, bool] = {}
    for path in map(path_of, targets):
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


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"

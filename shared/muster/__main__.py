"""The entry point of the command `muster`; it imports nothing that an installation may lack."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; say which packages to install if they are missing."""
    try:
        from muster.cli import main as command  # noqa: PLC0415 - click may not be installed

        command()
    except ModuleNotFoundError as error:
        sys.exit(_missing(error))


def _missing(error: ModuleNotFoundError) -> str:
    """Return which package is missing, and the command that installs it.

    Raises:
        ModuleNotFoundError: the module is one of Muster's own, which is a bug.
    """
    name = (error.name or "").partition(".")[0]
    if name == "muster":
        raise error
    return f"muster: the package {name} is not installed; pip install 'muster-gangs[local]' installs it"


if __name__ == "__main__":
    main()

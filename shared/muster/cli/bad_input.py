"""Bad input is answered with one line and exit status 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from muster.replay.files import BadFileError


class BadInput(click.ClickException):
    """What was given cannot be used; whoever called has to change it."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """One line on standard error."""
        click.echo(f"muster: {self.message}", file=file, err=file is None)


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn what files and names can have wrong into BadInput."""
    try:
        yield
    except BadFileError as error:
        raise BadInput(str(error)) from None
    except LookupError as error:
        raise BadInput(str(error.args[0])) from None

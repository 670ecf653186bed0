"""Print rows as kubectl prints them, and in lines below each other where a terminal is too narrow."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from muster.objects.text import cut_to, printable

CELL = 400
"""Characters of a cell: enough for a kind (63), a namespace (63) and a name (253)."""
TEXT = 4096
"""Characters of a text: twice those of a condition's message, which may have escaped ones."""
_GAP = "  "
_INDENT = " " * 4


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text in aligned columns, as kubectl prints them.

    Control characters are escaped, so that no cell continues in the next line. Long cells are cut, since the
    longest makes all rows as wide.
    """
    return _aligned(headers, [list(map(_cell, row)) for row in rows])


def _cell(text: str, most: int = CELL) -> str:
    return cut_to(printable(text, most + 1), most)


def _aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    widths[-1] = 0
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *rows)
    )


def fitted(headers: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None) -> str:
    """Return a table whose last column is a text; if it is too wide, each text stands below its row.

    Texts may be longer than cells: each makes only its own row as wide.

    Args:
        headers: of the columns.
        rows: of the table.
        columns: the width of the terminal; None for a file or pipe, where every row is one line.
    """
    rows = [[*map(_cell, row[:-1]), _cell(row[-1], TEXT)] for row in rows]
    wide = _aligned(headers, rows)
    if columns is None or max(map(len, wide.splitlines())) <= columns:
        return wide
    head, *lines = _aligned(headers[:-1], [row[:-1] for row in rows]).splitlines()
    folded = [f"{head}{_GAP}{headers[-1]}"]
    for line, row in zip(lines, rows, strict=True):
        folded.append(line)
        folded += textwrap.wrap(
            row[-1],
            columns,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_on_hyphens=False,
        )
    return "\n".join(folded)


def terminal_columns() -> int | None:
    """Return the width of the terminal on standard output; None for a file or pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

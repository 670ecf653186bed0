"""Print rows as kubectl prints them, and in lines below each other where a terminal is too narrow."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence

from muster.objects.text import cut_to, printable

CELL = 400
"""Characters of a cell: enough for a kind (63), a namespace (63) and a name (253)."""
TEXT = 4096
"""Characters of a text: twice those of a condition's message, which may have escaped ones."""
_GAP = "  "
_INDENT = " " * 4


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of rows in aligned columns, as kubectl prints them.

    Control characters are escaped, so that no cell continues in the next line. Long cells are cut, since the
    longest makes all rows as wide.
    """
    cells = [list(map(_cell, row)) for row in rows]
    widths = _widths(headers, cells)
    widths[-1] = 0
    return (_line(row, widths).rstrip() for row in (headers, *cells))


def fitted(headers: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None) -> Iterator[str]:
    """Yield the lines of a table whose last column is a text; if it is too wide, each text is below its row.

    Texts may be longer than cells: each makes only its own row as wide. They are escaped one after another,
    because all of 10,000 rows take gigabytes.

    Args:
        headers: of the columns.
        rows: of the table.
        columns: the width of the terminal; None for a file or pipe, where every row is one line.
    """
    cells = [list(map(_cell, row[:-1])) for row in rows]
    widths = _widths(headers[:-1], cells)
    room = math.inf if columns is None else columns - sum(widths) - len(_GAP) * len(widths)
    # An escaped text is no shorter than the text.
    if all(len(row[-1]) <= room and len(_cell(row[-1], TEXT)) <= room for row in rows):
        yield _GAP.join((_line(headers[:-1], widths), headers[-1]))
        for row, cells_of_row in zip(rows, cells, strict=True):
            yield _GAP.join((_line(cells_of_row, widths), _cell(row[-1], TEXT))).rstrip()
        return
    widths[-1] = 0
    yield _GAP.join((_line(headers[:-1], widths), headers[-1]))
    for row, cells_of_row in zip(rows, cells, strict=True):
        yield _line(cells_of_row, widths).rstrip()
        yield from textwrap.wrap(
            _cell(row[-1], TEXT),
            columns or 0,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_on_hyphens=False,
        )


def _cell(text: str, most: int = CELL) -> str:
    return cut_to(printable(text, most + 1), most)


def _widths(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(headers, *rows, strict=True)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))


def terminal_columns() -> int | None:
    """Return the width of the terminal on standard output; None for a file or pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

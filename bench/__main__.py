"""Measure all figures, or those that are named, and write docs/speed.md: `python -m bench [figure …]`."""

from __future__ import annotations

import argparse
import time
from importlib import import_module

from bench.figures import PAGE, Figure, figures, page, progress
from bench.processes import FailedError
from tests.cluster.modules import BuildFailed
from tests.cluster.processes import NotReady

FIGURES = ("jobs", "growth", "warm-step", "cold-start", "sweeps")
"""Each is measured by `measure` of the module of its name; the order is that of docs/speed.md."""


def main() -> None:
    """Measure, save the raw data, and write the page of everything that has ever been measured."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="figure", help=", ".join(FIGURES))
    given = parser.parse_args()
    if unknown := sorted(set(given.figures) - set(FIGURES)):
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    for name in given.figures or FIGURES:
        began = time.monotonic()
        progress(f"\n{name}: measuring, up to ten minutes")
        try:
            figure: Figure = import_module(f"bench.{name.replace('-', '_')}").measure()
        except (FailedError, BuildFailed, NotReady) as error:
            raise SystemExit(f"{name}: {error}") from None
        figure.save()
        progress(f"{name}: {time.monotonic() - began:.0f} s")
    PAGE.write_text(page(figures(FIGURES)))


if __name__ == "__main__":
    main()

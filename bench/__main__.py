"""Measure all figures, or those that are named, and write docs/speed.md: `python -m bench [figure …]`."""

from __future__ import annotations

import argparse
import time
from importlib import import_module

from bench import report
from bench.figures import ROOT, Figure, progress
from bench.subjects import FailedError
from tests.cluster.modules import BuildFailed
from tests.cluster.processes import NotReady

FIGURES = ("cold-start", "warm-step", "jobs", "growth", "sweeps")
"""Each is measured by `measure` of the module of its name; the order is that of docs/speed.md."""


def main() -> None:
    """Measure, save the raw data, and write the page of everything that has ever been measured."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="figure", help=", ".join(FIGURES))
    given = parser.parse_args()
    if unknown := sorted(set(given.figures) - set(FIGURES)):
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    for name in given.figures or FIGURES:
        try:
            _measure(name)
        except (FailedError, BuildFailed, NotReady) as error:
            raise SystemExit(f"{name}: {error}") from None
    report.write(FIGURES)
    progress(f"{report.PAGE.relative_to(ROOT)} is written")


def _measure(name: str) -> None:
    started = time.monotonic()
    progress(f"\n{name}: measuring, up to ten minutes")
    figure: Figure = import_module(f"bench.{name.replace('-', '_')}").measure()
    path = figure.save()
    progress(f"{name}: {path.relative_to(ROOT)} after {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

"""Compares the size of the tree with tests/budgets.yaml: `python -m tests.budgets`, part of `make check`."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from muster.runtime.config import Settings

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = Path(__file__).with_suffix(".yaml")
MUSTER = "shared/muster/"
IMAGE = (
    "functions/",
    *(f"{MUSTER}{name}/" for name in ("objects", "events", "policy", "cluster", "runtime")),
)
SIMULATOR = f"{MUSTER}simulator/"
DOCUMENTS = ("README.md", "docs/")


def tracked() -> list[str]:
    """Return the paths of all files that git tracks, as far as they exist."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.split("\0") if path and (ROOT / path).is_file()]


def measured(paths: Iterable[str]) -> dict[str, int]:
    """Return the size of each part of the tree: lines as `wc -l` counts them, words as `wc -w` does."""
    python = {path: _lines(path) for path in paths if path.endswith(".py")}
    pages = {path: _words(path) for path in paths if path.endswith(".md") and path.startswith(DOCUMENTS)}
    code = {path: lines for path, lines in python.items() if path.startswith(("functions/", MUSTER))}
    image = sum(lines for path, lines in code.items() if path.startswith(IMAGE))
    simulator = sum(lines for path, lines in code.items() if path.startswith(SIMULATOR))
    data = [path for path in paths if path.startswith("tests/") and not path.endswith((".py", ".md"))]
    return {
        "image": image,
        "tools": sum(code.values()) - image - simulator,
        "simulator": simulator,
        "tests": sum(lines for path, lines in python.items() if path.startswith("tests/")),
        "test data": sum(map(_lines, data)),
        "settings": len(dataclasses.fields(Settings)),
        "security policies": sum(_lines(path) for path in paths if path.startswith("eventing/security/")),
        "documents": sum(pages.values()),
        "security documents": sum(words for path, words in pages.items() if "security" in path),
        "longest file": max(python.values()),
    }


def main() -> int:
    """Print each part with its budget and goal; return 1 if a budget is exceeded."""
    budgets: dict[str, dict[str, Any]] = yaml.safe_load(BUDGETS.read_text())
    exceeded = False
    for part, size in measured(tracked()).items():
        budget = budgets[part]
        most, goal = budget["at most"] + sum(budget.get("granted", {}).values()), budget["goal"]
        exceeded |= size > most
        verdict = f"{size - most:,} too many" if size > most else "ok"
        left = f", {size - goal:,} above the goal" if size > goal else ""
        sys.stdout.write(f"{part:20}{size:>8,} of {most:>7,} {budget['counts']}: {verdict}{left}\n")
    return int(exceeded)


def _lines(path: str) -> int:
    return (ROOT / path).read_bytes().count(b"\n")


def _words(path: str) -> int:
    return len((ROOT / path).read_text().split())


if __name__ == "__main__":
    sys.exit(main())

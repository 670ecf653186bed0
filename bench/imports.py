"""What the start of a process imports: `python -X importtime`, summed up by top-level package."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.figures import Measure, samples
from bench.subjects import FailedError

PACKAGES = 12
"""How many packages the tables list; the others are summed up."""
STANDARD_LIBRARY = "standard library"
_LINE = re.compile(r"^import time:\s+(\d+) \|[\s\d]+\|\s+(\S+)$", re.MULTILINE)

Profile = Mapping[str, tuple[float, int]]
"""Milliseconds and number of imported modules, by top-level package."""


def profile(code: str, folder: Path, environment: Mapping[str, str]) -> Profile:
    """Run code with `-X importtime`; return milliseconds and number of modules by top-level package."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FailedError(done.stderr[-2000:])
    spent: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for microseconds, module in _LINE.findall(done.stderr):
        package = module.partition(".")[0]
        if package in sys.stdlib_module_names or package.startswith("_"):
            package = STANDARD_LIBRARY
        spent[package] += int(microseconds)
        modules[package] += 1
    return {package: (spent[package] / 1000, modules[package]) for package in modules}


def measures(profiles: Mapping[str, Sequence[Profile]]) -> Iterator[Measure]:
    """One row for each of the slowest packages, one for the others, and one for all."""
    total: Counter[str] = Counter()
    for one in itertools.chain(*profiles.values()):
        total.update({package: spent for package, (spent, _) in one.items()})
    listed = [package for package, _ in total.most_common(PACKAGES)]
    rows = [(package, {package}) for package in listed]
    rows += [("others", set(total) - set(listed)), ("all", set(total))]
    for group, unit, place in (("Import time by package", "ms", 0), ("Imported modules by package", "", 1)):
        for name, packages in rows:
            sums = partial(_sum, packages=packages, place=place)
            yield Measure(name, unit, samples(profiles, sums), group)


def _sum(one: Profile, packages: set[str], place: int) -> float:
    return sum(one[package][place] for package in packages if package in one)

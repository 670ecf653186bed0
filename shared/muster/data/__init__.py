"""The files that come with Muster: manifests of eventing/, func projects of functions/, recordings.

A checkout has them beside shared/, an installed package in this folder.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
_CHECKOUT = _HERE.parents[2]
_IS_INSTALLED = (_HERE / "functions").is_dir()
_ROOT = _HERE if _IS_INSTALLED else _CHECKOUT

EVENTING = _ROOT / "eventing"
"""The folder eventing/ of a checkout."""

FUNCTIONS = _ROOT / "functions"
"""The folder functions/ of a checkout."""

RECORDINGS = _HERE / "recordings" if _IS_INSTALLED else _CHECKOUT / "tests" / "replays" / "recordings"
"""Muster's own recordings: tests/replays/recordings of a checkout."""

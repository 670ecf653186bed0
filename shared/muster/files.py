"""Paths of files that are not modules: manifests of eventing/, func projects of functions/, recordings."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parents[1]
_ROOT = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _CHECKOUT

EVENTING = _ROOT / "eventing"
"""The folder eventing/ of a checkout, or muster/data/eventing of an installed package."""

FUNCTIONS = _ROOT / "functions"
"""The folder functions/ of a checkout, or muster/data/functions of an installed package."""

RECORDINGS = _ROOT / "recordings" if _ROOT.name == "data" else _CHECKOUT / "tests" / "replays" / "recordings"
"""Muster's own recordings: tests/replays/recordings of a checkout, muster/data/recordings when installed."""

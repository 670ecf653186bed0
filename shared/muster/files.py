"""Paths of files that are not Python: the manifests of eventing/ and the func projects of functions/."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parents[1]
_ROOT = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _CHECKOUT

EVENTING = _ROOT / "eventing"
"""The folder eventing/ of a checkout, or muster/data/eventing of an installed package."""

FUNCTIONS = _ROOT / "functions"
"""The folder functions/ of a checkout, or muster/data/functions of an installed package."""

"""Kubernetes resource quantities as integers (apimachinery, pkg/api/resource/quantity.go)."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_SUFFIXES = {
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in zip((-3, -2, -1), "num", strict=True)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<exponent>[eE][+-]?[0-9]{1,2})|"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)
"""Number, and suffix or exponent."""


def is_quantity(text: str) -> bool:
    """Return whether a text is a quantity."""
    return _QUANTITY.fullmatch(text.strip()) is not None


def milli(quantity: str) -> int:
    """Return a quantity in thousandths, rounded up: `500m` is 500, `2` is 2000; 0 for what is no quantity."""
    match = _QUANTITY.fullmatch(quantity.strip())
    if match is None:
        return 0
    value = Decimal(f"{match['number']}{match['exponent'] or ''}") * _SUFFIXES[match["suffix"] or ""]
    return int((value * 1000).to_integral_value(ROUND_CEILING))

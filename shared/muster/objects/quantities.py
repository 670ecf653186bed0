"""Kubernetes resource quantities as integers (apimachinery, pkg/api/resource/quantity.go)."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from functools import lru_cache

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?)"
)
"""Number, and suffix or exponent; the exponent has to be one of 32 bits."""
_MOST = Decimal(2**63 - 1) * 1000
"""The most thousandths, and negated the fewest. apimachinery counts in 64 bits; `1e999999` would be an
integer of a million digits."""
_EXACT = Context(prec=40, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
"""Enough digits for all thousandths up to _MOST, and for any exponent."""


def is_quantity(text: str) -> bool:
    """Return whether the API server reads a text as a quantity."""
    return _match(text) is not None


@lru_cache(maxsize=4096)
def milli(quantity: str) -> int:
    """Return a quantity in thousandths, rounded up: `500m` is 500, `2` is 2000, `1Ki` is 1024000.

    At most, and at least, 2^63 - 1 whole ones; 0 for what is no quantity, which no API server stores.
    """
    match = _match(quantity)
    if match is None:
        return 0
    value = _EXACT.multiply(Decimal(match["number"]), _SUFFIXES[match["suffix"]] * 1000)
    return int(min(max(value, -_MOST), _MOST).to_integral_value(ROUND_CEILING))


def _match(text: str) -> re.Match[str] | None:
    """Return number and suffix; None if the text is no quantity."""
    match = _QUANTITY.fullmatch(text.strip())
    return None if match is None or (match["suffix"] and "e" in match["number"].lower()) else match

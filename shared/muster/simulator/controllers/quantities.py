"""Kubernetes resource quantities as integers."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
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


@lru_cache(maxsize=4096)
def milli(quantity: str) -> int:
    """Parse a quantity into thousandths, rounded up: `500m` is 500, `2` is 2000, `1Ki` is 1024000."""
    text = quantity.strip()
    number = text.rstrip("numkKMGTPEi")
    suffix = text[len(number) :]
    value = Decimal(number or "0") * _SUFFIXES.get(suffix, Decimal(1)) * 1000
    return int(value.to_integral_value(rounding="ROUND_CEILING"))

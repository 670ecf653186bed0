"""Resource quantities are whole numbers of thousandths."""

from __future__ import annotations

import pytest

from muster.simulator.controllers.quantities import milli


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        pytest.param("2", 2000, id="a plain number"),
        pytest.param("500m", 500, id="thousandths"),
        pytest.param("0.5", 500, id="a fraction"),
        pytest.param("1k", 1_000_000, id="a decimal suffix"),
        pytest.param("32Gi", 32 * 2**30 * 1000, id="a binary suffix"),
        pytest.param("1e3", 1_000_000, id="an exponent"),
        pytest.param("1u", 1, id="less than a thousandth is rounded up"),
    ],
)
def test_quantity_in_thousandths(quantity: str, expected: int) -> None:
    """Every spelling of apimachinery's Quantity that resources use is read."""
    assert milli(quantity) == expected

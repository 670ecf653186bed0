"""Resource quantities are whole numbers of thousandths."""

from __future__ import annotations

import pytest

from muster.objects.quantities import is_quantity, milli
from tests.support.cpu import at_most


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


@pytest.mark.parametrize(
    "text",
    ["", "+", "abc", "--1", "1_0", "1e", "1e1.5", "1e3Ki", "1i", "1 Ki", "Infinity", "NaN", "1e9999999999"],
)
def test_other_texts_are_no_quantities(text: str) -> None:
    """They count as nothing: no API server stores them."""
    assert not is_quantity(text)
    assert milli(text) == 0


@pytest.mark.parametrize(
    ("quantity", "whole"),
    [
        pytest.param("1e999990", 2**63 - 1, id="an exponent"),
        pytest.param("-1e999999999", 1 - 2**63, id="the largest exponent, negative"),
        pytest.param("16Ei", 2**63 - 1, id="a binary suffix"),
        pytest.param("9" * 200_000, 2**63 - 1, id="many digits"),
        pytest.param("1e-999999999", 0.001, id="the smallest, rounded up"),
    ],
)
def test_quantities_of_more_than_64_bits_are_capped(quantity: str, whole: float) -> None:
    """Before there is an integer of a million digits, which takes half a minute."""
    with at_most(0.1):
        assert milli(quantity) == whole * 1000


def test_a_text_of_many_digits_is_refused_in_linear_time() -> None:
    """`1111...x`."""
    with at_most(0.5):
        assert not is_quantity("1" * 200_000 + "x")

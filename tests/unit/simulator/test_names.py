"""Names of a megabyte, which no API server stores, but a file may have."""

from __future__ import annotations

import tracemalloc

import pytest

from muster.simulator.apiserver.validation import names


@pytest.mark.parametrize(
    "text", ["a." * 200_000 + "a", "a." * 200_000, "-a" * 200_000], ids=lambda text: text[-2:]
)
@pytest.mark.parametrize("check", [names.dns_subdomain, names.dns_label, names.label_key, names.label_value])
def test_a_long_name_takes_no_memory(check: names.Check, text: str) -> None:
    """A pattern that keeps each part of `a.a.a...` takes 100 bytes for each of them."""
    tracemalloc.start()
    assert any("must be no more than" in problem for problem in check(text))
    assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    tracemalloc.stop()

"""How many modules the start of a function imports, which is most of its cold start."""

from __future__ import annotations

import pytest

from muster.runtime.steps import step_names
from tests import counts


@pytest.mark.parametrize("step", step_names())
def test_a_start_imports_as_many_modules_as_before(step: str) -> None:
    """tests/counts.yaml says it exactly; `make golden-update` accepts a change."""
    assert counts.imported(step) == counts.pinned()["modules"][step]

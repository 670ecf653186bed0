"""The overlay one-namespace once more, with Knative's own broker: the stories of `test_one_namespace.py`."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import ClusterOptions
from tests.e2e.installation import test_one_namespace as stories

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(knative=True)
OVERLAY = "one-namespace"

_house = stories._house
_laws = stories._laws
test_a_role_is_all_that_a_trainjob_needs = stories.test_a_role_is_all_that_a_trainjob_needs
test_another_namespace_is_left_alone = stories.test_another_namespace_is_left_alone
test_dead_letters_are_kept_in_the_namespace = stories.test_dead_letters_are_kept_in_the_namespace

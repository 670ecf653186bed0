"""The policies of the service accounts on the real API servers: no type warnings."""

from __future__ import annotations

import pytest

from tests.cluster import cluster, manifests
from tests.cluster.control_plane import Release
from tests.cluster.processes import until
from tests.contract.accounts import POLICIES, REFUSED_BY

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize("release", ["1.37", "1.36"])
def test_the_api_server_has_no_warnings(release: str) -> None:
    """A controller checks the types of the expressions, and writes the result in a policy's status."""
    options = cluster.ClusterOptions(Release(release), controllers=("controller-manager",))
    policies = [one for one in POLICIES if one["kind"] == REFUSED_BY]
    with cluster.running(options) as managed:
        manifests.apply(managed.api, POLICIES)

        def checked() -> bool:
            stored = [managed.api.must("GET", manifests.path(one)) for one in policies]
            return all("typeChecking" in (one.get("status") or {}) for one in stored)

        assert until(checked, 60)
        checks = [managed.api.must("GET", manifests.path(one))["status"]["typeChecking"] for one in policies]
    assert checks == [{}] * len(policies)

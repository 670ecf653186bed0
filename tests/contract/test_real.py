"""The contract cases hold on the real API servers, and these still answer as recorded.

What is recorded (`answers/`) is what the embedded server is held to in `make test`, so a release that answers
otherwise has to be noticed here.
"""

from __future__ import annotations

import pytest

from tests.contract import answers
from tests.contract.case import ContractCase
from tests.contract.conftest import Servers
from tests.contract.real import converse

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

EVERY_CASE = [
    pytest.param(release, case, id=f"{release}: {case.name}")
    for release in answers.RELEASES
    for case in answers.all_cases(release)
]


@pytest.mark.parametrize(("release", "case"), EVERY_CASE)
def test_the_real_server_keeps_to(release: str, case: ContractCase, servers: Servers) -> None:
    """The rule of the case holds, and every answer equals the recorded one."""
    cluster = servers.get(release, "collectors") if case.controllers else servers.get(release)
    got = converse(cluster, case)
    wanted = answers.read(release, case)
    assert wanted is not None, "not recorded yet: `make record`"
    assert answers.difference(wanted, got) == ""

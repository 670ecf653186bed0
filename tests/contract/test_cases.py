"""Every server keeps to the contract cases, and answers as the real one did when it was recorded.

What is recorded (`answers/`) is what the embedded server is held to in `make test`, so a release of
Kubernetes that answers otherwise has to be noticed with the real servers. Messages are not compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster.api import KubernetesApi
from tests.contract import answers
from tests.contract.case import ContractCase, Conversation
from tests.contract.conftest import Servers
from tests.contract.real import converse

NUMBERS = itertools.count(1)
EVERY_CASE = [
    pytest.param(release, case, id=f"{release} {case.subject}: {case.name}")
    for release in answers.RELEASES
    for case in answers.all_cases(release)
]


@pytest.fixture(scope="module")
def embedded() -> Iterator[dict[str, KubernetesApi]]:
    """An embedded server of each release, with the gates of the real ones (tests.cluster.control_plane)."""
    older_gates = Gates(topology_aware_workload_scheduling=False)
    with ApiServer() as newer, ApiServer(release="1.36", gates=older_gates) as older:
        yield {"1.37": KubernetesApi(newer.url), "1.36": KubernetesApi(older.url)}


@pytest.mark.parametrize(("release", "case"), EVERY_CASE)
def test_the_embedded_server_keeps_to(
    embedded: dict[str, KubernetesApi], release: str, case: ContractCase
) -> None:
    """The rule of the case holds, and every answer equals the recorded one of the real server."""
    namespace = f"contract-{next(NUMBERS)}"
    embedded[release].must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    conversation = Conversation(embedded[release], namespace)
    case.run(conversation, namespace)
    _compare(release, case, conversation.entries)


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("release", "case"), EVERY_CASE)
def test_the_real_server_keeps_to(release: str, case: ContractCase, servers: Servers) -> None:
    """The rule of the case holds, and every answer equals the recorded one."""
    cluster = servers.get(release, "collectors") if case.controllers else servers.get(release)
    _compare(release, case, converse(cluster, case))


def _compare(release: str, case: ContractCase, got: answers.Entries) -> None:
    recorded = answers.read(release, case)
    assert recorded is not None, "no real server was asked yet: `make record`"
    assert answers.difference(recorded, got) == ""

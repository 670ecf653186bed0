"""The embedded API server fulfils the contract cases, and answers like the real one apart from messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster.api import KubernetesApi
from tests.contract import answers
from tests.contract.case import ContractCase, Conversation

NUMBERS = itertools.count(1)

EVERY_CASE = [
    pytest.param(release, case, id=f"{release} {case.subject}: {case.name}")
    for release in answers.RELEASES
    for case in answers.all_cases(release)
]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, KubernetesApi]]:
    """An embedded server of each release, with the gates of the real ones (tests.cluster.control_plane)."""
    older_gates = Gates(topology_aware_workload_scheduling=False)
    with ApiServer() as newer, ApiServer(release="1.36", gates=older_gates) as older:
        yield {"1.37": KubernetesApi(newer.url), "1.36": KubernetesApi(older.url)}


@pytest.mark.parametrize(("release", "case"), EVERY_CASE)
def test_the_embedded_server_keeps_to(
    servers: dict[str, KubernetesApi], release: str, case: ContractCase
) -> None:
    """The rule of the case holds, and every answer equals the recorded one of the real server."""
    assert _difference(servers[release], release, case) == ""


@pytest.mark.real
@pytest.mark.parametrize("release", answers.RELEASES)
def test_the_embedded_server_keeps_to_all_that_the_real_one_is_asked(
    servers: dict[str, KubernetesApi], release: str
) -> None:
    """The same beside the real servers in `make e2e`: both must fulfil the same cases."""
    differences = {
        case.name: difference
        for case in answers.all_cases(release)
        if (difference := _difference(servers[release], release, case))
    }
    assert differences == {}


def _difference(api: KubernetesApi, release: str, case: ContractCase) -> str:
    namespace = f"contract-{next(NUMBERS)}"
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    conversation = Conversation(api, namespace)
    case.run(conversation, namespace)
    recorded = answers.read(release, case)
    assert recorded is not None, "no real server was asked yet: `make record`"
    return answers.difference(recorded, conversation.entries)

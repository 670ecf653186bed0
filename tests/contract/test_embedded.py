"""The embedded API server keeps the rules of the real one, and answers in substance what that answered."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster.api import Api
from tests.contract import answers
from tests.contract.case import Case, Conversation

NUMBERS = itertools.count(1)

EVERY_CASE = [
    pytest.param(release, case, id=f"{release} {case.subject}: {case.name}")
    for release in answers.RELEASES
    for case in answers.all_cases(release)
]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Api]]:
    """An embedded server of each release, with the gates of the real ones (tests.cluster.control_plane)."""
    older_gates = Gates(topology_aware_workload_scheduling=False)
    with ApiServer() as newer, ApiServer(release="1.36", gates=older_gates) as older:
        yield {"1.37": Api(newer.url), "1.36": Api(older.url)}


@pytest.mark.parametrize(("release", "case"), EVERY_CASE)
def test_the_embedded_server_keeps_to(servers: dict[str, Api], release: str, case: Case) -> None:
    """The rule of the case holds, and every answer around it is the one that the real server gave."""
    assert _difference(servers[release], release, case) == ""


@pytest.mark.real
@pytest.mark.parametrize("release", answers.RELEASES)
def test_the_embedded_server_keeps_to_all_that_the_real_one_is_asked(
    servers: dict[str, Api], release: str
) -> None:
    """The same in one go where the real servers run: one set of cases, and both have to hold it."""
    told = {
        case.name: difference
        for case in answers.all_cases(release)
        if (difference := _difference(servers[release], release, case))
    }
    assert told == {}


def _difference(api: Api, release: str, case: Case) -> str:
    namespace = f"contract-{next(NUMBERS)}"
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    conversation = Conversation(api, namespace)
    case.run(conversation, namespace)
    recorded = answers.read(release, case)
    assert recorded is not None, "no real server was asked yet: `make record`"
    return answers.difference(recorded, conversation.entries)

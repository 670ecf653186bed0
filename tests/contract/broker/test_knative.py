"""The contract cases hold on Knative's broker, and it still answers and delivers as recorded.

Our broker is held to the recording in `make test`, so a release of Knative that differs has to be noticed
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from tests.cluster import cluster
from tests.contract.broker import answers, knative
from tests.contract.broker.case import BrokerCase, Entries
from tests.contract.broker.cases import CASES
from tests.contract.broker.recipients import Recipients

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, Future[Entries]]]:
    """All cases, run on one Knative."""
    with cluster.running(knative.OPTIONS) as real, Recipients() as recipients:
        yield knative.run(CASES, real, recipients)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.subject}: {case.rule}") for case in CASES])
def test_knatives_broker_keeps_to(case: BrokerCase, runs: dict[str, Future[Entries]]) -> None:
    """The rule of the case holds, and everything equals the recording."""
    recorded = answers.read(case)
    assert recorded is not None, "not recorded yet: `make record`"
    assert answers.difference(recorded, runs[case.key].result()) == ""

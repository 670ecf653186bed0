"""Our broker fulfils the contract cases, and answers and delivers as Knative's did."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from muster.simulator.overlays import UnsupportedManifestError
from tests.contract.broker import answers
from tests.contract.broker.case import BrokerCase, Entries
from tests.contract.broker.recipients import Recipients
from tests.contract.broker.simulated import serving

AT_ONCE = 12
"""Cases that run at the same time; most of their time is waiting."""

CASES = answers.all_cases()


def _run(case: BrokerCase, recipients: Recipients) -> Entries:
    with serving(case, recipients) as broker:
        return answers.converse(case, broker, recipients)


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, Future[Entries]]]:
    """All cases, started together."""
    with Recipients() as recipients, ThreadPoolExecutor(AT_ONCE) as pool:
        yield {case.key: pool.submit(_run, case, recipients) for case in CASES}


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.subject}: {case.name}") for case in CASES])
def test_our_broker_keeps_to(case: BrokerCase, runs: dict[str, Future[Entries]]) -> None:
    """The rule holds and everything equals the recording, or the triggers are refused with a reason."""
    recorded = answers.read(case)
    assert recorded is not None, "Knative's broker was not asked yet: `make record`"
    if case.refused_here:
        with pytest.raises(UnsupportedManifestError, match=case.refused_here):
            runs[case.key].result()
    else:
        assert answers.difference(recorded, runs[case.key].result()) == ""

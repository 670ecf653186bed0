"""CESQL, which our broker refuses: no maintained Python library evaluates it."""

from __future__ import annotations

from tests.contract.broker.case import EVENT, BrokerCases, BrokerConversation

case = BrokerCases(__name__)
CASES = case.all

EXPRESSIONS = {
    "same": "kind = 'Job'",
    "other": "kind = 'Pod'",
    "like": "type LIKE 'dev.muster.%'",
    "both": "kind = 'Job' AND type LIKE '%sweep'",
    "listed": "kind IN ('Pod', 'Job')",
    "missing": "name = 'x'",
    "not-missing": "NOT (name = 'x')",
    "exists": "EXISTS kind",
    "exists-not": "EXISTS name",
    "guarded": "EXISTS name AND name = 'x'",
    "number": "LENGTH(kind) = 3",
    "truth": "TRUE",
}


@case(
    {name: {"filters": [{"cesql": expression}]} for name, expression in EXPRESSIONS.items()},
    refused_here="cesql",
)
def expressions(broker: BrokerConversation) -> None:
    """CESQL compares attributes; an expression with a missing attribute never passes."""
    broker.post(EVENT | {"Ce-Kind": "Job"})
    assert broker.who_heard() == {"same", "like", "both", "listed", "exists", "number", "truth"}


@case(
    {
        "all": {"filters": [{"all": [{"exact": {"kind": "Job"}}, {"cesql": "EXISTS kind"}]}]},
        "not": {"filters": [{"not": {"cesql": "kind = 'Pod'"}}]},
    },
    refused_here="cesql",
)
def inside_others(broker: BrokerConversation) -> None:
    """CESQL stands inside other dialects."""
    broker.post(EVENT | {"Ce-Kind": "Job"})
    assert broker.who_heard() == {"all", "not"}


@case({})
def broken_expressions(broker: BrokerConversation) -> None:
    """An expression that cannot be parsed is refused."""
    assert not broker.accepts(filters=[{"cesql": "kind ="}])
    assert not broker.accepts(filters=[{"all": [{"cesql": "(("}]}])

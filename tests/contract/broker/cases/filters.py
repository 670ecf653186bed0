"""Filters of triggers, in the dialects other than CESQL."""

from __future__ import annotations

from typing import Any

from tests.contract.broker.case import EVENT, BrokerCases, BrokerConversation

case = BrokerCases(__name__)
CASES = case.all

ADDED = EVENT | {
    "Ce-Type": "dev.knative.apiserver.resource.add",
    "Ce-Kind": "Job",
    "Ce-Namespace": "",
    "Ce-Subject": "/apis/batch/v1/jobs/qwen",
    "Content-Type": "application/json; charset=utf-8",
}
JOB, POD = {"exact": {"kind": "Job"}}, {"exact": {"kind": "Pod"}}
ADD, UPDATE = {"suffix": {"type": ".add"}}, {"suffix": {"type": ".update"}}


def _by(**filters: Any) -> dict[str, dict[str, Any]]:
    """Return a trigger for each filter, and one without a filter."""
    named = {name.replace("_", "-"): {"filters": entries} for name, entries in filters.items()}
    return {"everything": {}, **named}


@case(
    _by(
        exact=[JOB],
        exact_other=[POD],
        exact_lower=[{"exact": {"kind": "job"}}],
        exact_two=[{"exact": {"kind": "Job", "id": "1"}}],
        exact_one_of_two=[{"exact": {"kind": "Job", "id": "2"}}],
        prefix=[{"prefix": {"type": "dev.knative."}}],
        prefix_middle=[{"prefix": {"type": "knative."}}],
        suffix=[ADD],
        suffix_other=[UPDATE],
        suffix_middle=[{"suffix": {"type": ".resource"}}],
    )
)
def comparisons(broker: BrokerConversation) -> None:
    """Exact, prefix and suffix compare values with their case, and all attributes of one count."""
    broker.post(ADDED, b"{}")
    assert broker.who_heard() == {"everything", "exact", "exact-two", "prefix", "suffix"}


@case(
    _by(
        exact=[{"exact": {"name": "x"}}],
        prefix=[{"prefix": {"name": "x"}}],
        suffix=[{"suffix": {"name": "x"}}],
        no=[{"not": {"exact": {"name": "x"}}}],
        no_prefix=[{"not": {"prefix": {"name": "x"}}}],
        no_suffix=[{"not": {"suffix": {"name": "x"}}}],
    )
)
def missing_attributes(broker: BrokerConversation) -> None:
    """A missing attribute fails exact, prefix and suffix, and so passes `not`."""
    broker.post(ADDED, b"{}")
    assert broker.who_heard() == {"everything", "no", "no-prefix", "no-suffix"}


@case(
    _by(
        no=[{"not": POD}],
        no_match=[{"not": JOB}],
        not_not=[{"not": {"not": JOB}}],
        all_of=[{"all": [ADD, JOB]}],
        all_but_one=[{"all": [ADD, POD]}],
        any_of=[{"any": [POD, JOB]}],
        any_none=[{"any": [POD, UPDATE]}],
        any_single=[{"any": [POD]}],
        nested=[{"all": [ADD, {"any": [POD, {"not": POD}]}]}],
        beside=[ADD, JOB],
        beside_one_fails=[ADD, POD],
    )
)
def combinations(broker: BrokerConversation) -> None:
    """`all`, `any` and `not` nest; filters beside one another are all needed."""
    broker.post(ADDED, b"{}")
    assert broker.who_heard() == {"everything", "no", "not-not", "all-of", "any-of", "nested", "beside"}

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


@case(
    _by(
        none=[],
        dialect=[{}],
        exact=[{"exact": {}}],
        prefix=[{"prefix": {}}],
        suffix=[{"suffix": {}}],
        all_of=[{"all": []}],
        any_of=[{"any": []}],
        value=[{"exact": {"kind": ""}}],
        value_of_prefix=[{"prefix": {"kind": ""}}],
        value_of_suffix=[{"suffix": {"kind": ""}}],
        value_of_one=[{"exact": {"kind": "", "id": "2"}}],
        any_of_empty=[{"any": [{"exact": {}}]}],
        all_of_empty=[{"all": [{"exact": {}}]}],
        not_any_of_empty=[{"not": {"any": [{"exact": {}}]}}],
        beside=[{"exact": {}}, JOB],
        beside_failing=[{"exact": {}}, POD],
        any_beside_failing=[{"any": [{"exact": {}}, POD, UPDATE]}],
    )
)
def empty_filters(broker: BrokerConversation) -> None:
    """A filter without attributes or members, or with an empty value, is left out.

    `not` of such a filter is no case: it ends Knative's filter process with a panic
    (`notFilter.Cleanup` in `pkg/eventfilter/subscriptionsapi/not_filter.go`), and ours refuses it.
    """
    broker.post(ADDED, b"{}")
    heard = broker.who_heard()
    assert {
        "everything",
        "none",
        "dialect",
        "exact",
        "all-of",
        "any-of",
        "value",
        "beside",
    } <= heard
    assert not {"beside-failing", "any-beside-failing"} & heard


@case(
    {
        "everything": {},
        "none": {"filter": {}},
        "no-attributes": {"filter": {"attributes": {}}},
        "same": {"filter": {"attributes": {"kind": "Job"}}},
        "other": {"filter": {"attributes": {"kind": "Pod"}}},
        "any-value": {"filter": {"attributes": {"kind": ""}}},
        "empty-attribute": {"filter": {"attributes": {"namespace": ""}}},
        "missing-attribute": {"filter": {"attributes": {"name": ""}}},
        "any-dataschema": {"filter": {"attributes": {"dataschema": ""}}},
        "any-time": {"filter": {"attributes": {"time": ""}}},
        "type-and-kind": {
            "filter": {"attributes": {"kind": "Job", "type": "dev.knative.apiserver.resource.add"}}
        },
        "one-of-two": {"filter": {"attributes": {"kind": "Job", "type": "x"}}},
        "filters-win": {"filters": [JOB], "filter": {"attributes": {"kind": "Pod"}}},
        "filters-lose": {"filters": [POD], "filter": {"attributes": {"kind": "Job"}}},
        "empty-filters": {"filters": [], "filter": {"attributes": {"kind": "Pod"}}},
    }
)
def attributes(broker: BrokerConversation) -> None:
    """In the older `filter.attributes` an empty value asks for any; `filters` wins unless it is empty."""
    broker.post(ADDED, b"{}")
    heard = broker.who_heard()
    assert {"same", "any-value", "type-and-kind", "filters-win"} <= heard
    assert (
        not {"other", "empty-attribute", "missing-attribute", "one-of-two", "filters-lose", "empty-filters"}
        & heard
    )


@case(
    _by(
        specversion=[{"exact": {"specversion": "1.0"}}],
        source=[{"exact": {"source": "/test"}}],
        id=[{"exact": {"id": "1"}}],
        subject=[{"prefix": {"subject": "/apis/batch/"}}],
        content_type=[{"exact": {"datacontenttype": "application/json; charset=utf-8"}}],
        media_type=[{"exact": {"datamediatype": "application/json"}}],
        time=[{"exact": {"time": "2026-11-22T08:00:00.5Z"}}],
        time_as_sent=[{"exact": {"time": "2026-11-22T09:00:00.500+01:00"}}],
        no_time=[{"prefix": {"time": "0001-01-01T"}}],
        schema=[{"exact": {"dataschema": "https://muster.dev/schema"}}],
        arrival=[{"prefix": {"knativearrivaltime": "20"}}],
        ttl=[{"exact": {"knativebrokerttl": "255"}}],
    )
)
def own_attributes(broker: BrokerConversation) -> None:
    """Filters see the attributes of CloudEvents, the media type of the data, and the time in UTC."""
    broker.post(
        ADDED | {"Ce-Time": "2026-11-22T09:00:00.500+01:00", "Ce-Dataschema": "https://muster.dev/schema"},
        b"{}",
    )
    heard = broker.who_heard()
    assert {"specversion", "source", "id", "subject", "content-type", "media-type", "time", "schema"} <= heard
    assert "time-as-sent" not in heard


@case(
    _by(
        no_time=[{"prefix": {"time": "0001-01-01T"}}],
        no_subject=[{"not": {"prefix": {"subject": "/"}}}],
        no_media_type=[{"not": {"prefix": {"datamediatype": "a"}}}],
        number=[{"exact": {"attempt": "3"}}],
        truth=[{"exact": {"final": "true"}}],
    )
)
def typed_extensions(broker: BrokerConversation) -> None:
    """Extensions of a structured event that are no strings are compared as their text."""
    broker.post(
        {"Content-Type": "application/cloudevents+json"},
        b'{"specversion": "1.0", "id": "1", "source": "/test", "type": "t", "attempt": 3, "final": true}',
    )
    assert broker.who_heard() >= {"everything", "number", "truth", "no-subject"}


@case({})
def refused_filters(broker: BrokerConversation) -> None:
    """Names of attributes have lower-case letters and digits; a filter has one dialect."""
    assert broker.accepts(filters=[JOB])
    assert not broker.accepts(filters=[{"exact": {"Kind": "Job"}}])
    assert not broker.accepts(filters=[{"prefix": {"my-kind": "Job"}}])
    assert not broker.accepts(filters=[{"suffix": {"1kind": "Job"}}])
    assert not broker.accepts(filters=[{"all": [{"any": [{"not": {"exact": {"Kind": "Job"}}}]}]}])
    assert not broker.accepts(filters=[{"exact": {"kind": "Job"}, "prefix": {"type": "x"}}])
    assert not broker.accepts(filters=[{"all": [JOB], "any": [JOB]}])
    assert not broker.accepts(filters=[{"exact": {"kind": "Job"}, "not": JOB}])
    assert not broker.accepts(filters=[{"not": {"exact": {"kind": "Job"}, "suffix": {"kind": "b"}}}])
    assert not broker.accepts(filter={"attributes": {"Kind": "Job"}})
    assert broker.accepts(filter={"attributes": {"kind": ""}})


@case({})
def unusual_filters(broker: BrokerConversation) -> None:
    """An empty dialect beside another one is no second dialect; a dialect that does not exist is dropped."""
    assert broker.accepts(filters=[{"exact": {"kind": "Job"}, "prefix": {}}])
    assert broker.accepts(filters=[{"exact": {}, "all": []}])

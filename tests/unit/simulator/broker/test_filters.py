"""The events that pass a trigger's filters, by Knative's table."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kustomize import UnsupportedManifestError
from muster.simulator.broker.filters import compile_filters

EVENT = {
    "specversion": "1.0",
    "type": "dev.knative.apiserver.resource.add",
    "source": "https://10.96.0.1:443",
    "kind": "Job",
    "namespace": "",
}
ADD = {"suffix": {"type": ".add"}}
JOB = {"exact": {"kind": "Job"}}
POD = {"exact": {"kind": "Pod"}}


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        pytest.param([], True, id="no filter lets everything through"),
        pytest.param([JOB], True, id="exact: the same value"),
        pytest.param([POD], False, id="exact: another value"),
        pytest.param([{"exact": {"kind": "job"}}], False, id="exact: the same value in other letters"),
        pytest.param(
            [{"exact": {"kind": "Job", "name": "x"}}], False, id="exact: all of its attributes count"
        ),
        pytest.param([{"prefix": {"type": "dev.knative."}}], True, id="prefix: a beginning"),
        pytest.param([{"prefix": {"type": "knative."}}], False, id="prefix: not a middle"),
        pytest.param([{"suffix": {"type": ".add"}}], True, id="suffix: an end"),
        pytest.param([{"suffix": {"type": ".update"}}], False, id="suffix: another end"),
        pytest.param([{"suffix": {"type": ".resource"}}], False, id="suffix: not a middle"),
        pytest.param([{"exact": {"name": "x"}}], False, id="exact: a missing attribute fails"),
        pytest.param([{"prefix": {"name": "x"}}], False, id="prefix: a missing attribute fails"),
        pytest.param([{"suffix": {"name": "x"}}], False, id="suffix: a missing attribute fails"),
        pytest.param([{"not": {"exact": {"name": "x"}}}], True, id="not: a missing attribute passes"),
        pytest.param([{"not": JOB}], False, id="not: turns a pass round"),
        pytest.param([{"all": [ADD, JOB]}], True, id="all: each passes"),
        pytest.param([{"all": [ADD, POD]}], False, id="all: one does not"),
        pytest.param([{"any": [POD, JOB]}], True, id="any: one passes"),
        pytest.param([{"any": [POD]}], False, id="any: none passes"),
        pytest.param([{"all": [ADD, {"any": [POD, {"not": POD}]}]}], True, id="dialects nest"),
        pytest.param([ADD, JOB], True, id="filters beside one another are all needed"),
        pytest.param([ADD, POD], False, id="one of several filters fails"),
        pytest.param([{"exact": {}}, {}], True, id="filters without attributes are left out"),
        pytest.param([{"exact": {"kind": ""}}], True, id="a filter with an empty value is left out"),
        pytest.param([{"any": []}, POD], False, id="any of nothing is left out, the rest counts"),
        pytest.param([{"any": [{"exact": {}}, POD]}], False, id="any: an empty member does not pass for it"),
    ],
)
def test_filters(filters: list[dict[str, Any]], passes: bool) -> None:
    """`spec.filters` in the dialects of the CloudEvents Subscriptions API."""
    assert compile_filters({"filters": filters})(EVENT) == passes


@pytest.mark.parametrize(
    ("attributes", "passes"),
    [
        pytest.param({}, True, id="no attributes let everything through"),
        pytest.param({"kind": "Job"}, True, id="the same value"),
        pytest.param({"kind": "Pod"}, False, id="another value"),
        pytest.param({"kind": ""}, True, id="an empty value asks for any"),
        pytest.param({"namespace": ""}, False, id="an empty attribute is not any"),
        pytest.param({"name": ""}, False, id="a missing attribute is not any"),
    ],
)
def test_attributes(attributes: dict[str, str], passes: bool) -> None:
    """`spec.filter.attributes`, the older form."""
    assert compile_filters({"filter": {"attributes": attributes}})(EVENT) == passes


def test_the_newer_form_wins() -> None:
    """With both set, `filter` is not looked at."""
    assert compile_filters({"filters": [JOB], "filter": {"attributes": {"kind": "Pod"}}})(EVENT)


@pytest.mark.parametrize(
    ("subscription", "name"),
    [
        pytest.param({"cesql": "type = 'x'"}, "cesql", id="CESQL"),
        pytest.param({"exact": {"kind": "Job"}, "prefix": {"type": "x"}}, "prefix", id="two dialects in one"),
        pytest.param({"exakt": {"kind": "Job"}}, "exakt", id="a dialect that does not exist"),
        pytest.param({"exact": {"Kind": "Job"}}, "Kind", id="an upper-case name of an attribute"),
        pytest.param({"not": {"exact": {}}}, "not", id="not of an empty filter, with which Knative's panics"),
        pytest.param({"all": [{"cesql": "TRUE"}]}, "cesql", id="CESQL deep inside"),
    ],
)
def test_unsupported_fields_are_refused(subscription: dict[str, Any], name: str) -> None:
    """A filter that cannot be kept is an error at the start, not a surprise for the first event."""
    with pytest.raises(UnsupportedManifestError) as refused:
        compile_filters({"filters": [subscription]})
    assert name in str(refused.value)

"""disruptionMode of groups: preemption takes a gang as a whole, unless a policy says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.model import Plan
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_gang,
    a_jobset,
    a_jobset_of_trainjob,
    a_replicated_job,
    a_trainjob,
    a_workload,
    observed,
)
from tests.support.planning import Observed, plan_pod_groups, plan_workload

ALL: Object = {"all": {}}
SINGLE: Object = {"single": {}}
JOBSET = a_jobset(a_replicated_job("a"), a_replicated_job("b"))


def under(policy: str = "") -> Observed:
    """A JobSet of two replicatedJobs under a policy."""
    sources = (PolicySource(PolicySourceKind.OWNER, "home", policy),) if policy else ()
    return observed(JOBSET, sources=sources)


def modes(given: Observed) -> dict[str, Any]:
    """The disruptionMode of each template of the Workload that create_workload plans; None if unset."""
    plan = plan_workload(given, NOW)
    assert isinstance(plan, Plan), plan
    return _modes((plan.actions[0].body or {})["spec"])


def _modes(level: Object) -> dict[str, Any]:
    lists = (level.get("podGroupTemplates") or [], level.get("compositePodGroupTemplates") or [])
    by_name: dict[str, Any] = {}
    for template in (template for templates in lists for template in templates):
        by_name |= {template["name"]: template.get("disruptionMode")} | _modes(template)
    return by_name


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        pytest.param("", {"a": ALL, "b": ALL}, id="gangs by default"),
        pytest.param(
            "workload: {groups: [{name: a, disruptionMode: {single: {}}}]}",
            {"a": SINGLE, "b": ALL},
            id="a policy says otherwise",
        ),
        pytest.param(
            "workload: {groups: [{name: a, schedulingPolicy: {gang: {minCount: 1}}}]}",
            {"a": ALL, "b": ALL},
            id="a gang that needs few of its pods",
        ),
        pytest.param(
            "workload: {groups: [{name: a, schedulingPolicy: {basic: {}}}]}",
            {"a": None, "b": ALL},
            id="a basic group is left to the API's default, single",
        ),
        pytest.param(
            "workload: {groups: [{name: r, groups: [{name: a}, {name: b}]}]}",
            {"r": ALL, "a": ALL, "b": ALL},
            id="a gang of gangs",
        ),
        pytest.param(
            "workload: {groups: [{name: r, schedulingPolicy: {basic: {}}, groups: [{name: a}, {name: b}]}]}",
            {"r": None, "a": ALL, "b": ALL},
            id="gangs in a basic group",
        ),
        pytest.param(
            "workload: {groups: [{name: r, disruptionMode: {single: {}}, groups: [{name: a}, {name: b}]}]}",
            {"r": SINGLE, "a": ALL, "b": ALL},
            id="a policy for a gang of gangs does not hold for those below it",
        ),
    ],
)
def test_templates_of_a_policy(policy: str, wanted: dict[str, Any]) -> None:
    """Gangs get `all`, basic groups nothing, and a policy's own value is kept."""
    assert modes(under(policy)) == wanted


def test_initializers_of_a_trainjob_are_basic() -> None:
    """They are evicted one by one."""
    entries = (
        a_replicated_job("dataset-initializer", step="dataset-initializer", pods=1),
        a_replicated_job("node", step="trainer", after=("dataset-initializer",)),
    )
    given = observed(a_trainjob(), jobset=a_jobset_of_trainjob(*entries))
    assert modes(given) == {"dataset-initializer": None, "trainer": ALL}


def test_groups_follow_their_stored_template() -> None:
    """A Workload that was stored before the default changed keeps its groups alike."""
    templates = (a_gang("a", 2), a_gang("b", 2, disruptionMode=ALL))
    workload = a_workload(*templates, root=JOBSET)
    jobs = [a_child_job(JOBSET, name, 0) for name in "ab"]
    plan = plan_pod_groups(observed(JOBSET, jobs=jobs, workload=workload), NOW)
    assert isinstance(plan, Plan), plan
    made = [(action.body or {})["spec"] for action in plan.actions]
    assert [spec.get("disruptionMode") for spec in made] == [None, ALL]

"""`muster plan`: its output is a contract for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.cli.conftest import Filed, Muster
from tests.unit.cli.sample import a_job, a_namespace, an_event, as_yaml

CLUSTER = as_yaml(a_namespace(), a_job())
SWEEP = an_event(type="dev.muster.sweep", data=None)
LABELS = {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": "gone"}
METADATA = {"name": "left", "namespace": "team", "uid": "w", "labels": LABELS}
LEFT = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": METADATA}
OF_A_WRITE = ["verb", "apiVersion", "kind", "namespace", "name", "body"]

Plan = Callable[..., Any]


@pytest.fixture
def plan(muster: Muster, filed: Filed) -> Plan:
    """The plans of a function for an event and the objects of a YAML stream."""

    def run(function: str, event: Any, objects: str = CLUSTER) -> Any:
        files = ["--event", filed("event.json", event), "--objects", filed("c.yaml", objects)]
        result = muster("plan", function, *files, "-o", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


def test_a_plan_has_the_promised_keys_and_no_others(plan: Plan) -> None:
    """Function, outcome, reason and actions; of each action what it writes."""
    (one,) = plan("create-workload", an_event())
    assert list(one) == ["function", "outcome", "reason", "actions"]
    assert (one["function"], one["outcome"], one["reason"]) == ("create_workload", "Plan", "WorkloadCreated")
    (action,) = one["actions"]
    assert list(action) == OF_A_WRITE
    assert (action["verb"], action["kind"], action["namespace"]) == ("create", "Workload", "team")


def test_status_and_deletion(plan: Plan) -> None:
    """A status patch says `subresource: status` before its body; a deletion has none."""
    (conditions,) = plan("emit_conditions", SWEEP)
    assert list(conditions["actions"][0]) == [*OF_A_WRITE[:-1], "subresource", "body"]
    (deleted,) = plan("create_workload", SWEEP, as_yaml(a_namespace(), LEFT))
    assert [list(action) for action in deleted["actions"]] == [OF_A_WRITE[:-1]]
    assert deleted["actions"][0]["verb"] == "delete"


def test_objects_may_come_in_lists_and_several_files(muster: Muster, filed: Filed) -> None:
    """Files are merged, Lists are opened, and the last word about an object counts."""
    jobs = {"apiVersion": "v1", "kind": "List", "items": [a_job()]}
    shrunk = {"apiVersion": "v1", "kind": "List", "items": [a_job(parallelism=1)]}
    arguments = ["plan", "create_workload", "--event", filed("event.json", an_event()), "-o", "json"]
    for name, content in (("n.yaml", as_yaml(a_namespace())), ("jobs.json", jobs), ("later.json", shrunk)):
        arguments += ["--objects", filed(name, content)]
    (one,) = json.loads(muster(*arguments).stdout)
    (template,) = one["actions"][0]["body"]["spec"]["podGroupTemplates"]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 1}}

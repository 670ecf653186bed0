"""`muster plan`: its output is a contract for scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import a_capture, a_job, a_namespace, an_event, as_yaml

CLUSTER = as_yaml(a_namespace(), a_job())


def documents(result: Result) -> list[dict[str, Any]]:
    """The plans that were printed."""
    assert result.exit_code == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


def test_a_plan_has_the_promised_keys_and_no_others(muster: Muster, filed: Filed) -> None:
    """Function, outcome, reason and actions; of each action verb, apiVersion, kind, namespace, name, body."""
    result = muster(
        "plan",
        "create_workload",
        "--event",
        filed("event.json", an_event()),
        "--objects",
        filed("c.yaml", CLUSTER),
    )
    (plan,) = documents(result)
    assert list(plan) == ["function", "outcome", "reason", "actions"]
    assert plan["function"] == "create_workload"
    assert (plan["outcome"], plan["reason"]) == ("Plan", "WorkloadCreated")
    (action,) = plan["actions"]
    assert list(action) == ["verb", "apiVersion", "kind", "namespace", "name", "body"]
    assert action["verb"] == "create"
    assert (action["apiVersion"], action["kind"]) == ("scheduling.k8s.io/v1beta1", "Workload")
    assert (action["namespace"], action["name"]) == ("team", action["body"]["metadata"]["name"])
    assert action["body"]["spec"]["podGroupTemplates"] == [
        {
            "name": "main",
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "disruptionMode": {"all": {}},
        }
    ]


def test_nothing_has_a_reason_and_no_actions(muster: Muster, filed: Filed) -> None:
    """An event about an object that is gone plans Nothing."""
    result = muster(
        "plan",
        "create_workload",
        "--event",
        filed("event.json", an_event()),
        "--objects",
        filed("c.yaml", as_yaml(a_namespace())),
    )
    assert documents(result) == [
        {"function": "create_workload", "outcome": "Nothing", "reason": "ObjectGone", "actions": []}
    ]


def test_a_write_to_the_status_says_so(muster: Muster, filed: Filed) -> None:
    """A status patch carries `subresource: status` before its body."""
    event = an_event(type="dev.muster.sweep", data=None)
    result = muster(
        "plan",
        "emit_conditions",
        "--event",
        filed("event.json", event),
        "--objects",
        filed("c.yaml", CLUSTER),
    )
    (plan,) = documents(result)
    assert list(plan["actions"][0]) == [
        "verb",
        "apiVersion",
        "kind",
        "namespace",
        "name",
        "subresource",
        "body",
    ]
    assert plan["actions"][0]["subresource"] == "status"


def test_a_deletion_has_no_body(muster: Muster, filed: Filed) -> None:
    """A sweep deletes the Workload of an owner that is gone, and a deletion needs no body."""
    left = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": "left",
            "namespace": "team",
            "uid": "w",
            "labels": {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": "gone"},
        },
    }
    event = an_event(type="dev.muster.sweep", data=None)
    result = muster(
        "plan",
        "create_workload",
        "--event",
        filed("event.json", event),
        "--objects",
        filed("c.yaml", as_yaml(a_namespace(), left)),
    )
    (plan,) = documents(result)
    (action,) = plan["actions"]
    assert action["verb"] == "delete"
    assert list(action) == ["verb", "apiVersion", "kind", "namespace", "name"]


@pytest.mark.parametrize("name", ["create_workload", "create-workload"])
def test_a_function_is_known_by_its_folder_and_by_its_service(
    muster: Muster, filed: Filed, name: str
) -> None:
    """Dashes and underscores name the same function."""
    result = muster(
        "plan", name, "--event", filed("e.json", an_event()), "--objects", filed("c.yaml", CLUSTER)
    )
    assert documents(result)[0]["function"] == "create_workload"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("event.json", an_event(), id="structured, as JSON"),
        pytest.param("event.yaml", as_yaml(an_event()), id="structured, as YAML"),
        pytest.param("event.jsonl", json.dumps(an_event()) + "\n", id="one line of JSON Lines"),
        pytest.param("event.json", [an_event()], id="a batch of one"),
        pytest.param("event.json", a_capture(an_event()), id="a captured request whose body is JSON"),
        pytest.param(
            "event.json",
            {**a_capture(an_event()), "body": json.dumps(a_job())},
            id="a captured request whose body is text",
        ),
        pytest.param(
            "event.json",
            {
                "headers": {name: [value] for name, value in a_capture(an_event())["headers"].items()},
                "body": a_job(),
            },
            id="a captured request of a server that keeps a list for each header",
        ),
    ],
)
def test_an_event_may_come_in_any_form(muster: Muster, filed: Filed, name: str, content: Any) -> None:
    """Every form of the same event makes the same plan."""
    cluster = filed("c.yaml", CLUSTER)
    usual = muster(
        "plan", "create_workload", "--event", filed("usual.json", an_event()), "--objects", cluster
    )
    other = muster("plan", "create_workload", "--event", filed(name, content), "--objects", cluster)
    assert other.stdout == usual.stdout
    assert "WorkloadCreated" in other.stdout


def test_objects_may_come_in_lists_and_several_files(muster: Muster, filed: Filed) -> None:
    """Files are merged, Lists are opened, and the last word about an object counts."""
    typed = {key: value for key, value in a_job().items() if key not in {"kind", "apiVersion"}}
    jobs = {"apiVersion": "batch/v1", "kind": "JobList", "items": [typed]}
    shrunk = {"apiVersion": "v1", "kind": "List", "items": [a_job(parallelism=1)]}
    arguments = ["plan", "create_workload", "--event", filed("event.json", an_event())]
    for name, content in (("n.yaml", as_yaml(a_namespace())), ("jobs.json", jobs), ("later.json", shrunk)):
        arguments += ["--objects", filed(name, content)]
    (plan,) = documents(muster(*arguments))
    (template,) = plan["actions"][0]["body"]["spec"]["podGroupTemplates"]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 1}}


def test_a_moment_of_a_recording_is_chosen_by_name(muster: Muster, filed: Filed) -> None:
    """Without a name the first with the object counts; objects outside of moments are there at each."""
    before = {"kind": "List", "moment": "before", "items": []}
    after = {"kind": "List", "moment": "after", "items": [a_job()]}
    recording = filed("r.yaml", as_yaml(a_namespace(), before, after))
    arguments = ["plan", "create_workload", "--event", filed("e.json", an_event()), "--objects", recording]
    assert documents(muster(*arguments))[0]["reason"] == "WorkloadCreated"
    missed = muster(*arguments, "--moment", "before")
    assert documents(missed)[0]["reason"] == "ObjectGone"
    assert_names(missed.stderr, "'before'", "Job team/sweep", "--moment after")


def test_a_sweep_prints_a_document_for_each_object(muster: Muster, filed: Filed) -> None:
    """Two Jobs, two plans, as a YAML stream."""
    other = a_job()
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "0" * 36}
    event = an_event(type="dev.muster.sweep", data=None)
    result = muster(
        "plan",
        "create_workload",
        "--event",
        filed("e.json", event),
        "--objects",
        filed("c.yaml", as_yaml(a_namespace(), a_job(), other)),
    )
    assert [plan["outcome"] for plan in documents(result)] == ["Plan", "Plan"]


def test_a_sweep_of_nothing_prints_nothing_and_says_so(muster: Muster, filed: Filed) -> None:
    """Scripts read an empty stream, people read why."""
    event = an_event(type="dev.muster.sweep", data=None)
    result = muster(
        "plan",
        "patch_pods",
        "--event",
        filed("e.json", event),
        "--objects",
        filed("c.yaml", as_yaml(a_namespace())),
    )
    assert (result.exit_code, result.stdout) == (0, "")
    (line,) = result.stderr.splitlines()
    assert_names(line, "patch_pods")


@pytest.mark.parametrize(
    ("arguments", "time"),
    [
        pytest.param([], "2026-11-21T08:17:25Z", id="the event's own time"),
        pytest.param(["--now", "2030-01-02T03:04:05Z"], "2030-01-02T03:04:05Z", id="the time that is given"),
    ],
)
def test_the_time_in_a_plan_is_never_the_clocks(
    muster: Muster, filed: Filed, arguments: list[str], time: str
) -> None:
    """The same input gives the same plan on any day."""
    event = an_event(type="dev.muster.sweep", data=None)
    result = muster(
        "plan",
        "emit_conditions",
        "--event",
        filed("e.json", event),
        "--objects",
        filed("c.yaml", CLUSTER),
        *arguments,
    )
    (plan,) = documents(result)
    conditions = plan["actions"][0]["body"]["status"]["conditions"]
    assert {condition["lastTransitionTime"] for condition in conditions} == {time}


@pytest.mark.thorough
def test_planning_asks_no_server() -> None:
    """Neither the Kubernetes client nor a web server is so much as imported."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import muster.cli.plan, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert "muster.operator.plan" in loaded
    assert {"kubernetes", "urllib3", "flask", "waitress"}.isdisjoint(loaded)


def test_plans_as_json(muster: Muster, filed: Filed) -> None:
    """The same documents in one array."""
    event, cluster = filed("e.json", an_event()), filed("c.yaml", as_yaml(a_namespace(), a_job()))
    arguments = ["plan", "create_workload", "--event", event, "--objects", cluster]
    assert json.loads(muster(*arguments, "-o", "json").stdout) == documents(muster(*arguments))

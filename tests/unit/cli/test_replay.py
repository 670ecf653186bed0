"""`muster replay`: what the functions make of events, and the report about the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result

from tests.unit.cli.conftest import Filed, Muster, assert_names, without_folder
from tests.unit.cli.sample import UID, a_job, a_namespace, an_event, as_yaml
from tests.unit.cluster.scripted import ScriptedResponse, serving

GROUP = f"sweep-main-{UID[:8]}"


def a_pod() -> dict[str, Any]:
    """A pod of the Job, stamped and gated."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep", "uid": UID, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "sweep-0-abcde",
            "namespace": "team",
            "uid": "0f6a3c1e-0000-4000-8000-000000000001",
            "labels": {
                "muster.dev/group": "main",
                "batch.kubernetes.io/controller-uid": UID,
                "batch.kubernetes.io/job-name": "sweep",
                "batch.kubernetes.io/job-completion-index": "0",
            },
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulingGroup": {"podGroupName": GROUP},
            "schedulingGates": [{"name": "muster.dev/pod-group"}],
            "containers": [{"name": "main", "image": "busybox"}],
        },
    }


CLUSTER = as_yaml(a_namespace(), a_job(), a_pod())


def ended(result: Result) -> dict[str, Any]:
    """What `--output yaml` said."""
    assert result.exit_code == 0, result.output
    output: dict[str, Any] = yaml.safe_load(result.stdout)
    return output


def test_one_event_starts_the_whole_chain(muster: Muster, filed: Filed) -> None:
    """From a Job's add to Workload, PodGroup, lifted gate and conditions: writes are the next events."""
    output = ended(
        muster("replay", filed("e.json", an_event()), "--objects", filed("c.yaml", CLUSTER), "-o", "yaml")
    )
    (workload,) = output["workloads"]
    assert workload["owner"] == "Job sweep"
    assert workload["groups"] == {"main": {"gang": {"minCount": 2}}}
    (group,) = output["podGroups"]
    assert (group["name"], group["schedulingPolicy"]) == (GROUP, {"gang": {"minCount": 2}})
    assert group["owners"] == ["Job sweep", f"Workload {workload['name']}"]
    assert group["pods"] == {"total": 1, "gated": 0, "bound": 0}
    (owner,) = output["owners"]
    assert [condition["type"] for condition in owner["conditions"]] == [
        "PodGroupsReady",
        "PodGroupsScheduled",
    ]
    assert output["functions"]["create_workload"] == {"WorkloadCreated": 1}


def test_shuffled_and_doubled_events_and_a_sweep_end_the_same(muster: Muster, filed: Filed) -> None:
    """Each event comes as often as asked, in an order that its seed gives again."""
    stream = [an_event(id=str(number)) for number in range(4)]
    arguments = ["replay", filed("e.json", stream), "--objects", filed("c.yaml", CLUSTER)]
    arranged = [*arguments, "--shuffle", "7", "--duplicates", "1", "--sweep"]
    assert muster(*arranged).stdout.startswith("8 events")
    plain, once, again = (ended(muster(*each, "-o", "yaml")) for each in (arguments, arranged, arranged))
    assert once == again
    assert [group["name"] for group in plain["podGroups"]] == [GROUP]
    assert once["podGroups"] == plain["podGroups"]


def test_text_is_for_people(muster: Muster, filed: Filed) -> None:
    """Who acted and why, then what there is."""
    result = muster("replay", filed("e.json", an_event()), "--objects", filed("c.yaml", CLUSTER))
    assert result.exit_code == 0
    created = next(line for line in result.stdout.splitlines() if "WorkloadCreated" in line)
    assert_names(created, "create_workload", "Job team/sweep", "1")
    (group,) = (line for line in result.stdout.splitlines() if line.startswith(f"PodGroup team/{GROUP}"))
    assert_names(group, "minCount 2", "Job sweep", "Workload sweep-")


def test_an_event_that_no_function_can_read_ends_as_a_dead_letter(muster: Muster, filed: Filed) -> None:
    """The others are delivered all the same; the exit status shows it."""
    broken = an_event({"apiVersion": "batch/v1", "kind": "Job"}, id="7")
    stream = filed("e.json", [broken, an_event()])
    result = muster("replay", stream, "--objects", filed("c.yaml", CLUSTER))
    assert result.exit_code == 1
    assert "WorkloadCreated" in result.stdout
    line = result.stderr.splitlines()[-1]
    assert_names(line, "7", "dev.knative.apiserver.resource.add", "400")


def test_an_invalid_event_stops_the_replay_before_any_delivery(
    muster: Muster, filed: Filed, tmp_path: Path
) -> None:
    """A broker would not take it in either; the line is reported."""
    lines = json.dumps(an_event()) + "\n" + json.dumps({**an_event(), "id": ""}) + "\n"
    result = muster("replay", filed("e.jsonl", lines), "--objects", filed("c.yaml", CLUSTER))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = without_folder(result.stderr, tmp_path).splitlines()
    assert_names(line, "e.jsonl:2", "id")


def test_the_moment_that_has_the_job_of_the_events_is_taken(muster: Muster, filed: Filed) -> None:
    """Other pods existed before; another moment is used where it is named; missing objects are reported."""
    other = a_pod()
    other["metadata"] |= {"name": "other-0", "uid": "0f6a3c1e-0000-4000-8000-000000000002"}
    before = {"kind": "List", "moment": "start", "items": [other]}
    after = {"kind": "List", "moment": "end", "items": [a_job(), a_pod()]}
    recording = filed("r.yaml", as_yaml(a_namespace(), before, after))
    arguments = ["replay", filed("e.json", an_event()), "--objects", recording, "--output", "yaml"]
    assert ended(muster(*arguments))["workloads"]
    missed = muster(*arguments, "--moment", "start")
    assert ended(missed)["workloads"] == []
    (line,) = missed.stderr.splitlines()
    assert_names(line, "'start'", "Job team/sweep", "--moment end")


def test_sent_events_are_answered_by_a_function(muster: Muster, filed: Filed) -> None:
    """A line for each answer; one that is refused makes the exit status 1."""
    stream = [an_event(id=str(number), namespace="team", name=f"sweep-{number}") for number in (1, 2)]
    refusal = {"reason": "Conflict", "message": "changed meanwhile"}
    with serving(ScriptedResponse(202), ScriptedResponse(409, refusal)) as function:
        result = muster("replay", filed("e.json", stream), "--to", function.url)
    assert result.exit_code == 1
    first, second, summary = result.stdout.splitlines()
    assert_names(first, "Job team sweep-1", "202")
    assert_names(second, "sweep-2", "409", "Conflict", "changed meanwhile")
    assert_names(summary, "2 events", "1 accepted", "1 refused")
    assert [request.headers["ce-id"] for request in function.requests] == ["1", "2"]

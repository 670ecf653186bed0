"""`muster replay`: what the functions make of events, and the report about the end."""

from __future__ import annotations

import json
from typing import Any

import yaml
from click.testing import Result

from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import UID, a_job, a_namespace, a_pod, an_event, as_yaml

GROUP = f"sweep-main-{UID[:8]}"
CLUSTER = as_yaml(a_namespace(), a_job(), a_pod())


def ended(result: Result) -> dict[str, Any]:
    """What `--output yaml` said."""
    assert result.exit_code == 0, result.output
    output: dict[str, Any] = yaml.safe_load(result.stdout)
    return output


def test_one_event_starts_the_whole_chain(muster: Muster, filed: Filed) -> None:
    """From a Job's add to Workload, PodGroup and lifted gate: writes and replies are the next events."""
    output = ended(
        muster("replay", filed("e.json", an_event()), "--objects", filed("c.yaml", CLUSTER), "-o", "yaml")
    )
    (gang,) = output["gangs"]
    assert (gang["what"], gang["reason"]) == ("job/sweep", "WaitingForPods")
    (group,) = gang["podGroups"]
    assert (group["name"], group["policy"], group["needed"]) == (GROUP, "gang", 2)
    assert (group["members"], group["gated"], group["bound"]) == (1, 0, 0)
    assert output["functions"]["create_workload"] == {"WorkloadCreated": 1}


def test_an_event_that_no_function_can_read_ends_as_a_dead_letter(muster: Muster, filed: Filed) -> None:
    """The others are delivered all the same; the exit status shows it."""
    broken = an_event({"apiVersion": "batch/v1", "kind": "Job"}, id="7")
    stream = filed("e.json", [broken, an_event()])
    result = muster("replay", stream, "--objects", filed("c.yaml", CLUSTER))
    assert result.exit_code == 1
    assert "WorkloadCreated" in result.stdout
    line = result.stderr.splitlines()[-1]
    assert_names(line, "7", "dev.knative.apiserver.resource.add", "400")


def test_an_invalid_event_stops_the_replay_before_any_delivery(muster: Muster, filed: Filed) -> None:
    """A broker would not take it in either; the line is reported."""
    lines = json.dumps(an_event()) + "\n" + json.dumps({**an_event(), "id": ""}) + "\n"
    result = muster("replay", filed("e.jsonl", lines), "--objects", filed("c.yaml", CLUSTER))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert_names(line, "e.jsonl:2", "id")


def test_the_moment_that_is_taken_is_told_with_the_others(muster: Muster, filed: Filed) -> None:
    """It is the one that has the job of the events; another one is used where it is named."""
    moments = (
        {"kind": "List", "moment": name, "items": [a_pod(), a_job()][:n]} for n, name in [(1, "a"), (2, "b")]
    )
    arguments = ["replay", filed("e.json", an_event()), "--objects", filed("r.yaml", as_yaml(*moments))]
    assert muster(*arguments).stdout.startswith("from the moment 'b', of 'a', 'b'\n")
    assert muster(*arguments, "--moment", "a").stdout.startswith("from the moment 'a'")

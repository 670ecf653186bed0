"""The summary that `muster replay` prints of a cluster."""

from __future__ import annotations

import json

from muster.replay.summary import MOST_ENTRIES, as_lines, muster_conditions, summarize
from tests.support import builders as b
from tests.support import cpu


def test_the_pods_of_each_group_are_counted() -> None:
    """Those of its namespace that name it; thousands of groups take no longer for each."""
    job = b.a_job(pods=2)
    pods = [b.a_pod(job, 0, b.bound), b.a_pod(job, 1)]
    group = b.a_pod_group(b.a_pod(job, 0)["spec"]["schedulingGroup"]["podGroupName"])
    elsewhere = {**group, "metadata": {**group["metadata"], "namespace": "team-b"}}
    many = [b.a_pod_group(f"other-{number}") for number in range(2000)]
    with cpu.at_most(2):
        summary = summarize([*pods * 1000, group, elsewhere, *many])
    totals = {(one["namespace"], one["name"]): one["pods"]["total"] for one in summary["podGroups"]}
    assert totals["team-a", group["metadata"]["name"]] == 2000
    assert totals["team-b", group["metadata"]["name"]] == 0


def test_a_condition_without_a_type_is_none_of_musters() -> None:
    """A file may have any value there."""
    assert muster_conditions({"status": {"conditions": [{"status": "True"}, {"type": None}]}}) == []


def test_little_is_shown_of_a_large_object() -> None:
    """A file may have thousands of templates, owners and conditions, or megabytes in a name."""
    number, text = 5 * MOST_ENTRIES, "x" * 100_000
    condition = {"type": "PodGroupsReady", "status": "False", "reason": text, "message": text}
    owners = [{"kind": "Job", "name": text}] * number
    objects = [
        b.a_workload(*(b.a_gang(f"{text}{one}", 1) for one in range(number))),
        b.a_pod_group("a", b.with_spec(schedulingPolicy={"gang": {"minCount": 1, "other": text}})),
        b.a_trainjob(b.with_status(conditions=[condition] * number)),
    ]
    objects[1]["metadata"]["ownerReferences"] = owners
    summary = summarize(objects)
    assert len(json.dumps(summary)) < 2_000_000
    assert list(summary["workloads"][0]["groups"])[-1] == f"{number - MOST_ENTRIES} more"
    assert summary["podGroups"][0]["owners"][-1] == f"{number - MOST_ENTRIES} more"
    assert sum(map(len, as_lines(summary))) < 2_000_000

"""Groups of groups per Job and per block while Jobs grow, shrink, end and are restarted."""

from __future__ import annotations

from typing import Any

from muster.policy import group_labels
from muster.policy.groups.gate_release import placed_together
from muster.policy.model import Plan
from muster.policy.reasons import Reason
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_pod,
    being_deleted,
    bound,
    placed,
    pods_of,
    template_labelled,
    with_status,
)
from tests.support.messages import mentions
from tests.support.planning import (
    Observed,
    held_groups,
    plan_conditions,
    plan_pod_groups,
    plan_resize,
)
from tests.support.replicas import (
    BLOCKS,
    JOB_BLOCK,
    POLICY,
    counts,
    created,
    jobs_of,
    of_kind,
    one_template,
    parents,
    short,
    two_templates,
    with_groups,
)

TREE = "[{name: replica, per: Job, groups: [%s]}]"
COMPLETE = with_status(conditions=[{"type": "Complete", "status": "True"}])


def resized(given: Any) -> list[tuple[str, str, int]]:
    """Verb, group and count of each action on a CompositePodGroup; 0 for a deletion."""
    decision = plan_resize(given, NOW)
    return [
        (str(action.verb), short(action.target.name), next(iter(counts([dict(action.body)]).values())))
        if action.body
        else (str(action.verb), short(action.target.name), 0)
        for action in (decision.actions if isinstance(decision, Plan) else ())
        if action.target.kind == "CompositePodGroup"
    ]


def jobs_with(jobset: Object, entry: str, index: int, *modifiers: Any) -> list[Object]:
    """All Jobs of the JobSet, one of them changed."""
    changed = a_child_job(jobset, entry, index, *modifiers)
    name = changed["metadata"]["name"]
    return [changed if job["metadata"]["name"] == name else job for job in jobs_of(jobset)]


def test_only_the_replica_whose_leader_has_ended_needs_less() -> None:
    """Its CompositePodGroup is replaced; the template keeps the count of the other."""
    jobset = two_templates()
    jobs = jobs_with(jobset, "leader", 1, COMPLETE)
    given = with_groups(jobset, POLICY, created(jobset), jobs=jobs)
    assert resized(given) == [("delete", "replica-1", 0), ("create", "replica-1", 1)]
    decision = plan_resize(given, NOW)
    assert isinstance(decision, Plan)
    assert not [action for action in decision.actions if action.target.kind == "Workload"]
    (create,) = (action.body for action in decision.actions if action.body and action.verb == "create")
    assert parents([dict(create)]) == {"replica-1": "serve"}


def test_a_rack_in_a_replica_is_replaced_below_its_replica() -> None:
    """The first host of the second Job's first rack has ended."""
    jobset = one_template(JOB_BLOCK)
    racks = "{name: rack, size: 4, groups: [{name: workers}]}"
    policy = f"workload: {{groups: [{{name: replica, per: Job, groups: [{racks}]}}]}}"
    jobs = jobs_with(jobset, "node", 1, with_status(completedIndexes="0-1"))
    given = with_groups(jobset, policy, created(jobset, policy), jobs=jobs)
    assert resized(given) == [("delete", "rack-1-0", 0), ("create", "rack-1-0", 1)]
    decision = plan_resize(given, NOW)
    assert isinstance(decision, Plan)
    (create,) = (action.body for action in decision.actions if action.body and action.verb == "create")
    assert parents([dict(create)]) == {"rack-1-0": "replica-1"}


def test_a_replica_that_has_ended_is_no_longer_waited_for() -> None:
    """Both of its Jobs are complete: the root needs one replica."""
    jobset = two_templates()
    ended = [
        a_child_job(jobset, name, 0, COMPLETE) if index == 0 else a_child_job(jobset, name, 1)
        for name in ("leader", "workers")
        for index in range(2)
    ]
    given = with_groups(jobset, POLICY, created(jobset), jobs=ended)
    assert resized(given)[:2] == [("delete", "serve", 0), ("create", "serve", 1)]


def test_a_replica_that_runs_keeps_its_count_when_its_sibling_is_restarted() -> None:
    """The count rises for the replica without bound pods only."""
    jobset = two_templates()
    workload, bodies = created(jobset)
    for body in bodies:
        if short(body["metadata"]["name"]).startswith("replica"):
            body["spec"]["schedulingPolicy"] = {"gang": {"minGroupCount": 1}}
    running = a_pod(a_child_job(jobset, "workers", 0), 0, bound)
    given = with_groups(jobset, POLICY, (workload, bodies), pods=[running])
    assert resized(given) == [("delete", "replica-1", 0), ("create", "replica-1", 2)]


def test_a_replica_whose_replacement_was_interrupted_is_created() -> None:
    """Its children name it; those of the other are not touched."""
    jobset = two_templates()
    workload, bodies = created(jobset)
    left = [body for body in bodies if short(body["metadata"]["name"]) != "replica-1"]
    given = with_groups(jobset, POLICY, (workload, left))
    assert resized(given) == [("create", "replica-1", 2)]


def restarting(policy: str) -> Observed:
    """Placed replicas: the first has a new leader beside old workers that end, the second a new worker."""
    jobset = two_templates()
    workload, bodies = created(jobset, policy)
    for body in of_kind("PodGroup", bodies):
        placed(body)
    leader, workers = (a_child_job(jobset, name, 0) for name in ("leader", "workers"))
    others = [a_child_job(jobset, name, 1) for name in ("leader", "workers")]
    pods = [*pods_of(leader), *pods_of(workers, bound, being_deleted), *pods_of(others[0], bound)]
    pods += [a_pod(others[1], 0), *pods_of(others[1], bound)[1:]]
    return with_groups(jobset, policy, (workload, bodies), pods=pods)


def test_a_restarted_replica_holds_back_itself_alone() -> None:
    """Replicas without a group above them are placed one by one."""
    given = restarting(f"workload: {{groups: {TREE % '{name: leader}, {name: workers}'}}}")
    assert {short(name): reason.reason for name, reason in held_groups(given).items()} == {
        "leader-0": Reason.AWAITING_MEMBERS,
        "workers-0": Reason.AWAITING_MEMBERS,
    }
    (second,) = (group for group in given.groups if short(group.metadata.name) == "workers-1")
    together = placed_together(given.members, second)
    assert {short(group.metadata.name) for group in together} == {"leader-1", "workers-1"}


def test_a_restarted_replica_holds_back_those_it_is_placed_with() -> None:
    """Below one root the scheduler would count the old workers of the first for all of them."""
    given = restarting(POLICY)
    assert {short(name) for name in held_groups(given)} == {
        f"{group}-{replica}" for group in ("leader", "workers") for replica in range(2)
    }
    assert len(placed_together(given.members, given.groups[0])) == 4


def test_a_missing_replica_is_reported_by_its_name() -> None:
    """PodGroupsReady is False with the name of the CompositePodGroup."""
    jobset = two_templates()
    workload, bodies = created(jobset)
    left = [body for body in bodies if short(body["metadata"]["name"]) != "replica-1"]
    decision = plan_conditions(with_groups(jobset, POLICY, (workload, left)), NOW)
    assert isinstance(decision, Plan)
    (status,) = (action.body for action in decision.actions if action.subresource == "status")
    assert status is not None
    ready = status["status"]["conditions"][0]
    assert ready["reason"] == Reason.WAITING_FOR_POD_GROUP
    assert mentions(ready["message"], "llama-replica-22222222-1")
    assert not mentions(ready["message"], "llama-replica-22222222-0")


def in_blocks(pods: int) -> Object:
    """A Job in blocks of two."""
    return a_job(template_labelled({group_labels.GROUP_SIZE: "2"}), pods=pods)


def test_a_job_that_grows_gets_the_groups_of_its_new_blocks() -> None:
    """The group of groups of a new block too; the groups that exist are left alone."""
    given = with_groups(in_blocks(11), BLOCKS, created(in_blocks(8), BLOCKS))
    decision = plan_pod_groups(given, NOW)
    assert isinstance(decision, Plan)
    made = [dict(action.body) for action in decision.actions if action.body]
    assert parents(made) == {"rack-2": "zone", "main-4": "rack-2", "main-5": "rack-2"}
    assert counts(made) == {"rack-2": 2, "main-4": 2, "main-5": 1}
    assert resized(given) == [("delete", "zone", 0), ("create", "zone", 3)]


def test_a_job_that_shrinks_needs_fewer_blocks() -> None:
    """The last rack has one host left; racks without pods are no longer waited for."""
    workload, bodies = created(in_blocks(11), BLOCKS)
    running = a_pod(in_blocks(6), 0, bound)
    given = with_groups(in_blocks(6), BLOCKS, (workload, bodies), pods=[running])
    assert resized(given) == [
        ("delete", "zone", 0),
        ("create", "zone", 2),
        ("delete", "rack-1", 0),
        ("create", "rack-1", 1),
    ]

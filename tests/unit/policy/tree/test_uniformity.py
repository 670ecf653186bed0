"""Pods that differ in priority or scheduler: which groups they can have, and the condition of their owner.

The scheduler places no pod of a group, a basic one included, whose pods differ. A fallback group helps only
those pods whose PodGroup has a name of its own.
"""

from __future__ import annotations

import pytest

from muster.objects.scheduling import PriorityClass, Workload
from muster.policy import group_labels
from muster.policy.model import NoOp, Plan
from muster.policy.owners.kind import Priority, priority_of
from muster.policy.sources import source as sources
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    WORKLOAD_UID,
    Modifier,
    Object,
    a_child_job,
    a_jobset,
    a_replicated_job,
    a_workload,
    observed,
    template_labelled,
    template_spec,
)
from tests.support.messages import mentions
from tests.support.planning import (
    Observed,
    conditions_of,
    needs_priority_classes,
    plan_pod_groups,
    plan_workload,
    resolve,
)
from tests.support.priorities import a_priority_class_view as a_class

CLASSES = (
    a_class("hi", 1000),
    a_class("urgent", 1000),
    a_class("polite", 1000, preemptionPolicy="Never"),
    a_class("lo", 10),
    a_class("zero", 0),
    a_class("system-node-critical", 2_000_001_000),
)
DEFAULT = a_class("usual", 1000, globalDefault=True)
PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})
BLOCKS = template_labelled({group_labels.GROUP_SIZE: "2"})
LED = template_labelled({group_labels.LEADER_GROUP: "lead"})
FIRST, SECOND = (f"spec.replicatedJobs[{number}].template.spec.template" for number in range(2))
BOTH = (FIRST, SECOND)


def of(priority: str = "", scheduler: str = "") -> Modifier:
    """Pods of that priorityClassName and schedulerName."""
    fields = {"priorityClassName": priority, "schedulerName": scheduler}
    return template_spec(**{name: value for name, value in fields.items() if value})


def two(
    first: tuple[Modifier, ...], second: tuple[Modifier, ...], *, groups: str = "gg", jobs: str = "11"
) -> Object:
    """A JobSet of two replicatedJobs with two pods each: the groups they are in, the Jobs each has."""
    entries = (
        a_replicated_job(name, *modifiers, label=label, replicas=int(replicas))
        for name, modifiers, label, replicas in zip("ab", (first, second), groups, jobs, strict=True)
    )
    return a_jobset(*entries)


def seen(jobset: Object, *classes: PriorityClass, policy: str = "") -> Observed:
    """The JobSet with its Jobs, beside these PriorityClasses."""
    jobs = [
        a_child_job(jobset, entry["name"], index)
        for entry in jobset["spec"]["replicatedJobs"]
        for index in range(entry["replicas"])
    ]
    asked = (PolicySource(PolicySourceKind.OWNER, "home", policy),) if policy else ()
    return observed(jobset, jobs=jobs, sources=asked, priority_classes=classes)


def outcome(given: Observed) -> tuple[dict[str, str], str, str]:
    """Kind and class of every PodGroup that is made, by its short name, and the owner's reasons."""
    manifests = _created(plan_workload(given, NOW))
    owner = given.owner
    assert owner is not None
    stored = next((body for body in manifests if body["kind"] == "Workload"), None)
    if stored is not None:
        stored = {**stored, "metadata": {**stored["metadata"], "uid": WORKLOAD_UID}}
        kept = sources.source_of_workload(Workload.read(stored))
        with_it = observed(owner.model_dump(by_alias=True), jobs=(), workload=stored, sources=kept)
        # create_pod_groups reads no PriorityClasses: they were judged when the Workload was made.
        manifests = _created(plan_pod_groups(with_it, NOW))
    groups = [body for body in manifests if body["kind"] == "PodGroup"]
    resolved = resolve(given)
    assert not isinstance(resolved, NoOp)
    there = observed(owner.model_dump(by_alias=True), jobs=(), groups=map(_stored, groups))
    ready, _ = conditions_of(there, resolved)
    return {_short(body): _kind_and_class(body) for body in groups}, ready.reason, ready.message


def _created(plan: Plan | NoOp) -> list[Object]:
    assert isinstance(plan, Plan), plan
    return [dict(action.body or {}) for action in plan.actions if action.verb == "create"]


def _stored(body: Object) -> Object:
    return {**body, "metadata": {**body["metadata"], "uid": f"{body['metadata']['name']}-uid"}}


def _short(body: Object) -> str:
    name: str = body["metadata"]["name"]
    return name.removeprefix("llama-").replace("-22222222", "")


def _kind_and_class(body: Object) -> str:
    policy = body["spec"]["schedulingPolicy"]
    kind = f"gang of {policy['gang']['minCount']}" if "gang" in policy else "basic"
    return f"{kind}, {body['spec'].get('priorityClassName', 'no class')}"


@pytest.mark.parametrize(
    ("given", "groups", "reason", "facts"),
    [
        # Between the groups of one Workload.
        pytest.param(
            seen(two((of("hi"),), (of("lo"),), groups="ab"), *CLASSES),
            {"a": "gang of 2, hi", "b": "gang of 2, lo"},
            "PodGroupsExist",
            (),
            id="groups of one owner may have different priorities: each has its pods' class",
        ),
        pytest.param(
            seen(two((of("hi"),), (), groups="ab"), *CLASSES),
            {"a": "gang of 2, hi", "b": "gang of 2, no class"},
            "PodGroupsExist",
            (),
            id="one of them may have none",
        ),
        pytest.param(
            seen(two((of(scheduler="mine"),), (), groups="ab")),
            {"a": "gang of 2, no class", "b": "gang of 2, no class"},
            "PodGroupsExist",
            (),
            id="groups of one owner may have different schedulers",
        ),
        # Within the PodGroups of one group label: pods that differ may still never meet in one of them.
        pytest.param(
            seen(two((of("hi"), PER_JOB), (of("lo"),)), *CLASSES),
            {"g-0": "gang of 2, hi", "g": "gang of 2, lo"},
            "PodGroupsExist",
            (),
            id="per Job: pods of another replicatedJob in a PodGroup of their own may differ",
        ),
        pytest.param(
            seen(two((of("hi"), PER_JOB), (of("lo"), PER_JOB), jobs="21"), *CLASSES),
            {"g-0": "basic, hi", "g-1": "basic, hi"},
            "PrioritiesDiffer",
            ("g", *BOTH, "priorityClassName", "hi", 1000, "lo", 10),
            id="per Job: where they meet all get fallback groups, and those whose pods are alike run",
        ),
        pytest.param(
            seen(two((of("hi"), PER_JOB), (of("urgent"), PER_JOB), jobs="21"), *CLASSES),
            {"g-0": "gang of 4, hi", "g-1": "gang of 2, hi"},
            "PodGroupsExist",
            (),
            id="per Job: classes of one value are one gang",
        ),
        pytest.param(
            seen(two((of(scheduler="mine"), PER_JOB), (PER_JOB,), jobs="21")),
            {"g-0": "basic, no class", "g-1": "basic, no class"},
            "SchedulersDiffer",
            ("g", *BOTH, "schedulerName", "default-scheduler", "mine"),
            id="per Job: schedulers may not differ either",
        ),
        pytest.param(
            seen(two((of("hi"), BLOCKS), (of("lo"),)), *CLASSES),
            {"g-0": "gang of 2, hi", "g": "gang of 2, lo"},
            "PodGroupsExist",
            (),
            id="blocks: pods in no block of the others' may differ",
        ),
        pytest.param(
            seen(two((of("hi"), BLOCKS), (of("lo"), BLOCKS)), *CLASSES),
            {"g-0": "basic, hi"},
            "PrioritiesDiffer",
            ("g", *BOTH, "priorityClassName", "hi", 1000, "lo", 10),
            id="blocks: two replicatedJobs in one block need one priority",
        ),
        pytest.param(
            seen(two((of(scheduler="mine"), BLOCKS), (BLOCKS,))),
            {"g-0": "basic, no class"},
            "SchedulersDiffer",
            ("g", *BOTH, "schedulerName", "default-scheduler", "mine"),
            id="blocks: and one scheduler",
        ),
        pytest.param(
            seen(two((of("hi"), LED), (of("hi"), LED), groups="ab"), *CLASSES),
            {"lead": "gang of 2, hi", "a": "gang of 1, hi", "b": "gang of 1, hi"},
            "PodGroupsExist",
            (),
            id="leaders: two leaders of one class share a group",
        ),
        pytest.param(
            seen(two((of("hi"), LED), (of("lo"), LED), groups="ab"), *CLASSES),
            {"lead": "basic, hi", "a": "basic, hi", "b": "basic, lo"},
            "PrioritiesDiffer",
            ("lead", *BOTH, "priorityClassName", "hi", 1000, "lo", 10),
            id="leaders: of different priorities they cannot; their workers run in groups of their class",
        ),
        pytest.param(
            seen(two((of(scheduler="mine"), LED), (LED,), groups="ab")),
            {"lead": "basic, no class", "a": "basic, no class", "b": "basic, no class"},
            "SchedulersDiffer",
            ("lead", *BOTH, "schedulerName", "default-scheduler", "mine"),
            id="leaders: of different schedulers neither",
        ),
        # Within one PodGroup: the value counts, and what the class says of preemption.
        pytest.param(
            seen(two((of("hi"),), (of("urgent"),)), *CLASSES),
            {"g": "gang of 4, hi"},
            "PodGroupsExist",
            (),
            id="one group: classes of one value are one priority",
        ),
        pytest.param(
            seen(two((of("hi"),), (of("lo"),)), *CLASSES),
            {"g": "basic, hi"},
            "PrioritiesDiffer",
            ("g", *BOTH, "priorityClassName", "hi", 1000, "lo", 10),
            id="one group: classes of two values are not",
        ),
        pytest.param(
            seen(two((of("hi"),), (of("polite"),)), *CLASSES),
            {"g": "basic, hi"},
            "PrioritiesDiffer",
            ("g", *BOTH, "priorityClassName", "hi", 1000, "polite", "Never"),
            id="one group: nor classes of one value of which one never preempts",
        ),
        pytest.param(
            seen(two((of("zero"),), ()), *CLASSES),
            {"g": "gang of 4, zero"},
            "PodGroupsExist",
            (),
            id="one group: without a class the priority is 0",
        ),
        pytest.param(
            seen(two((of("hi"),), ()), *CLASSES, DEFAULT),
            {"g": "gang of 4, hi"},
            "PodGroupsExist",
            (),
            id="one group: without a class it is that of the global default",
        ),
        pytest.param(
            seen(two((of("zero"),), ()), *CLASSES, DEFAULT),
            {"g": "basic, zero"},
            "PrioritiesDiffer",
            ("g", *BOTH, "priorityClassName", 1000, "zero", 0),
            id="one group: which then is not 0",
        ),
        pytest.param(
            seen(two((of("hi"),), (of("gone"),)), *CLASSES),
            {"g": "basic, hi"},
            "PrioritiesDiffer",
            ("g", *BOTH, "priorityClassName", "gone", "hi", 1000),
            id="one group: a class that does not exist is like no other",
        ),
        pytest.param(
            seen(two((of(scheduler="mine"),), ())),
            {"g": "basic, no class"},
            "SchedulersDiffer",
            ("g", *BOTH, "schedulerName", "default-scheduler", "mine"),
            id="one group: pods need one scheduler",
        ),
    ],
)
def test_groups_of_pods_that_differ(
    given: Observed, groups: dict[str, str], reason: str, facts: tuple[object, ...]
) -> None:
    """Gangs where the scheduler can place them; else fallback groups, and the owner gets a condition."""
    *made, message = outcome(given)
    assert made == [groups, reason]
    assert mentions(message, *facts)


TREE = "workload: {groups: [{name: root, groups: [{name: a}, {name: b}]}]}"


@pytest.mark.parametrize(
    ("first", "second", "facts"),
    [
        pytest.param(
            of("hi"),
            of("lo"),
            ("hi", 1000, "lo", 10),
            id="two priorities",
        ),
        pytest.param(
            of(scheduler="mine"),
            of(),
            ("schedulerName", "default-scheduler", "mine"),
            id="two schedulers",
        ),
    ],
)
def test_all_pods_below_one_root_are_alike(
    first: Modifier, second: Modifier, facts: tuple[object, ...]
) -> None:
    """The scheduler places a tree as one; without it each fallback group of its own class runs."""
    given = seen(two((first,), (second,), groups="ab"), *CLASSES, policy=TREE)
    groups, reason, message = outcome(given)
    assert [kind.split(",")[0] for kind in groups.values()] == ["basic", "basic"]
    assert reason == "InvalidPolicy"
    assert mentions(message, "home", "workload.groups[0]", *facts)


def test_a_tree_over_classes_of_one_value_is_made() -> None:
    """The Workload names no class, because the API compares names there; each group has its pods'."""
    given = seen(two((of("hi"),), (of("urgent"),), groups="ab"), *CLASSES, policy=TREE)
    (workload,) = _created(plan_workload(given, NOW))
    assert "priorityClassName" not in str(workload["spec"])
    groups, reason, _ = outcome(given)
    assert groups == {"a": "gang of 2, hi", "b": "gang of 2, urgent"}
    assert reason == "WaitingForPodGroup"  # the composite one, which is no PodGroup


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        pytest.param(observed(two((of("hi"),), (of("hi"),))), False, id="one name"),
        pytest.param(observed(two((of("hi"),), (of("urgent"),))), True, id="two names"),
        pytest.param(observed(two((of("hi"),), ())), True, id="one name and none"),
        pytest.param(
            observed(a_jobset(a_replicated_job("a", of("hi")), a_replicated_job("b", label="none"))),
            False,
            id="the other is opted out",
        ),
        pytest.param(
            observed(two((of("hi"),), (of("lo"),)), workload=a_workload(root=a_jobset())),
            False,
            id="the Workload exists: they were judged when it was made",
        ),
        pytest.param(
            observed(a_jobset(a_replicated_job("a", of("hi"), label="none"))),
            False,
            id="nothing is Muster's to group",
        ),
    ],
)
def test_classes_are_read_only_where_names_differ(given: Observed, needed: bool) -> None:
    """Most owners have one class, and cost no call."""
    assert needs_priority_classes(given) is needed


def test_of_two_global_defaults_the_lower_counts() -> None:
    """Two made at the same moment both exist; admission then takes the lower value."""
    other = a_class("other", 5, globalDefault=True)
    assert priority_of("", (DEFAULT, other)) == Priority("", (5, "PreemptLowerPriority"))


def test_unread_classes_are_compared_by_name() -> None:
    """Without the classes nothing says that two names come to the same."""
    assert priority_of("hi", ()) == priority_of("hi", ())
    assert priority_of("hi", ()) != priority_of("urgent", ())

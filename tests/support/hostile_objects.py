"""Objects of a tenant with ClusterRole `edit`, as large and as odd as the API server accepts them.

Hypothesis draws them, and the embedded API server refuses those that no API server would have stored.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from muster.cluster.errors import ClusterError
from muster.objects.meta import KubernetesObject
from muster.objects.resources import (
    CONFIGMAPS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.policy import group_labels
from muster.policy.group_labels import MANAGED_BY, MUSTER, OWNER_UID
from muster.policy.owners.job import job_workload_name
from muster.policy.sources.source import ANNOTATION
from muster.simulator.direct import Direct
from tests.support.builders import (
    Modifier,
    Object,
    a_jobset,
    a_replicated_job,
    annotated,
    template_labelled,
)

PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})
GROUPS = ("a", "b", "main", "trainer")
NAME = "llama"
MOST = 2**31 - 1
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="!&*%"), max_size=40
)
"""Without the characters of tags, anchors and aliases, which tests of the YAML loader are about."""

COUNTS = st.one_of(st.integers(0, 4), st.integers(0, 700), st.sampled_from([MOST, -1, -MOST]))
LABEL_VALUES = st.one_of(
    st.sampled_from([*GROUPS, "none", "job", "1", "2", "999999", "0", ""]),
    st.from_regex(r"\A[a-z0-9]([-A-Za-z0-9_.]{0,20}[a-z0-9])?\Z"),
)


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


GROUP_LABELS = st.fixed_dictionaries(
    {},
    optional={
        group_labels.GROUP: st.one_of(st.sampled_from(GROUPS), LABEL_VALUES),
        group_labels.GROUP_PER: st.sampled_from(["job", "pod"]),
        group_labels.GROUP_SIZE: st.sampled_from(["1", "2", "7", "999999", "0", "x"]),
        group_labels.LEADER_GROUP: st.one_of(st.sampled_from(GROUPS), LABEL_VALUES),
        group_labels.ANCESTOR: st.sampled_from(["trainer", "dataset-initializer", "x"]),
        group_labels.JOB_INDEX: LABEL_VALUES,
        group_labels.COMPLETION_INDEX: LABEL_VALUES,
        "kueue.x-k8s.io/queue-name": LABEL_VALUES,
    },
)

SETTINGS = _some(
    schedulingPolicy=st.sampled_from(
        [
            {"basic": {}},
            {"gang": {"minCount": 1}},
            {"gang": {"minCount": MOST}},
            {"gang": {"minGroupCount": 2}},
            {},
        ]
    ),
    per=st.just("Job"),
    size=st.integers(-1, 10**9),
    leader=st.booleans(),
    preemptionPolicy=st.sampled_from(["Never", "PreemptLowerPriority", "x"]),
    replicatedJobs=st.lists(st.sampled_from(["r-0", "r-1", "node"]), max_size=2),
    disruptionMode=st.sampled_from([{"all": {}}, {"single": {}}, {}]),
)


def _groups(children: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    group = st.tuples(st.sampled_from(GROUPS), SETTINGS, children).map(
        lambda parts: {"name": parts[0], **parts[1], **({"groups": parts[2]} if parts[2] else {})}
    )
    return st.lists(group, max_size=4, unique_by=lambda entry: str(entry["name"]))


POLICIES: st.SearchStrategy[str] = st.one_of(
    TEXT,
    st.fixed_dictionaries(
        {"groups": st.recursive(st.just([]), _groups, max_leaves=6)},
        optional={
            "onScale": st.sampled_from(["Follow", "Flag", "x"]),
            "onFailure": st.sampled_from(["Basic", "Hold"]),
        },
    ).map(lambda workload: json.dumps({"workload": workload})),
)

POD_TEMPLATES = st.builds(
    lambda labels, annotations, spec: {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **spec},
    },
    GROUP_LABELS,
    _some(**{group_labels.GATE_SWITCH: TEXT}),
    _some(
        priorityClassName=st.sampled_from(["", "high", "low", "", "system-node-critical"]),
        schedulerName=st.sampled_from(["default-scheduler", "mine", "mine", "mine", "volcano"]),
    ),
)

JOB_SPECS = st.builds(
    lambda fields, template: {**fields, "template": template},
    _some(
        parallelism=COUNTS,
        completions=COUNTS,
        completionMode=st.sampled_from(["Indexed", "NonIndexed"]),
        suspend=st.booleans(),
    ),
    POD_TEMPLATES,
)


def _metadata(name: str, **more: Any) -> Object:
    return {"name": name, **more}


@st.composite
def replicated_jobs(draw: st.DrawFn) -> list[Object]:
    """A few replicatedJobs, or one of them so many times."""
    drawn = draw(st.lists(JOB_SPECS, min_size=1, max_size=4))
    times = draw(st.sampled_from([1, 1, 1, 1, 10, 33]))
    statuses = st.sampled_from(["Ready", "Complete"])
    entries: list[Object] = []
    for index, spec in enumerate(drawn * times):
        entry = {"name": f"r-{index}", "replicas": draw(COUNTS) if index < 4 else 3}
        if index and draw(st.booleans()):
            entry["dependsOn"] = [{"name": f"r-{draw(st.integers(0, index - 1))}", "status": draw(statuses)}]
        entries.append({**entry, "template": {"spec": spec}})
    return entries


OWNER_METADATA = st.fixed_dictionaries(
    {},
    optional={
        ANNOTATION: POLICIES,
        "alpha.jobset.sigs.k8s.io/exclusive-topology": st.just("rack"),
    },
)
"""Annotations of owners and runtimes."""


@st.composite
def jobsets(draw: st.DrawFn) -> Object:
    """A JobSet."""
    spec: Object = {"replicatedJobs": draw(replicated_jobs()), "suspend": draw(st.booleans())}
    if draw(st.booleans()):
        spec["startupPolicy"] = {"startupPolicyOrder": draw(st.sampled_from(["InOrder", "AnyOrder"]))}
    return _body(JOBSETS, NAME, spec, annotations=draw(OWNER_METADATA))


@st.composite
def jobs(draw: st.DrawFn) -> Object:
    """A Job."""
    return _body(JOBS, draw(st.sampled_from([NAME, "j"])), draw(JOB_SPECS), annotations=draw(OWNER_METADATA))


@st.composite
def jobs_of_jobsets(draw: st.DrawFn) -> Object:
    """A Job that looks like one of the JobSet's; `stored` adds the JobSet as its controller."""
    labels = {
        group_labels.JOBSET_NAME: NAME,
        group_labels.REPLICATED_JOB: draw(st.sampled_from(["r-0", "r-1", "x"])),
        group_labels.JOB_INDEX: draw(st.sampled_from(["0", "1", "x"])),
    }
    return _body(JOBS, "of-the-jobset", draw(JOB_SPECS), labels=labels)


@st.composite
def workloads(draw: st.DrawFn) -> Object:
    """A Workload for one of the owners, as a user, or a client with Muster's labels, would make it."""
    kind = draw(
        st.sampled_from(
            [("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), ("trainer.kubeflow.org", "TrainJob")]
        )
    )
    templates = draw(
        st.lists(st.tuples(st.sampled_from(GROUPS), SETTINGS), max_size=4, unique_by=lambda entry: entry[0])
    )
    policy = {"gang": {"minCount": draw(st.integers(1, 500))}}
    spec = {
        "controllerRef": {"apiGroup": kind[0], "kind": kind[1], "name": NAME},
        "podGroupTemplates": [{"name": name, "schedulingPolicy": policy} for name, _ in templates],
    }
    labels = draw(st.sampled_from([{}, {MANAGED_BY: MUSTER, OWNER_UID: "somebody"}]))
    return _body(WORKLOADS, draw(st.sampled_from([NAME, "mine"])), spec, labels=labels)


@st.composite
def pods(draw: st.DrawFn) -> Object:
    """A pod that looks like one of an owner's."""
    labels = draw(GROUP_LABELS) | {
        group_labels.JOBSET_NAME: NAME,
        group_labels.JOB_NAME: NAME,
        group_labels.REPLICATED_JOB: draw(st.sampled_from(["r-0", "x"])),
    }
    spec: Object = {"containers": [{"name": "c", "image": "i"}]}
    if draw(st.booleans()):
        spec["schedulingGroup"] = {"podGroupName": draw(st.sampled_from([NAME, "other"]))}
        spec["schedulingGates"] = [{"name": group_labels.GATE}]
    return _body(PODS, "p", spec, labels=labels)


@st.composite
def trainjobs(draw: st.DrawFn) -> list[Object]:
    """A TrainJob with its runtime, and a policy where the runtime can have it."""
    runtime_spec = {
        "mlPolicy": {"numNodes": draw(st.integers(1, 3))},
        "template": {"spec": {"replicatedJobs": draw(replicated_jobs())[:4]}},
    }
    runtime = _body(TRAINING_RUNTIMES, "torch", runtime_spec, annotations=draw(OWNER_METADATA))
    reference = {"name": "torch", "kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"}
    trainjob = _body(TRAINJOBS, NAME, {"runtimeRef": reference}, annotations=draw(OWNER_METADATA))
    return [runtime, trainjob, draw(jobsets())]


@st.composite
def tenants(draw: st.DrawFn) -> list[Object]:
    """What one tenant creates in his namespace, in this order."""
    objects: list[Object] = []
    if draw(st.booleans()):
        policy = {"data": {draw(st.sampled_from(["policy.yaml", "policy"])): draw(POLICIES)}}
        objects.append(_body(CONFIGMAPS, "muster-policy", None) | policy)
    objects += draw(st.one_of(trainjobs(), jobsets().map(lambda one: [one]), jobs().map(lambda one: [one])))
    objects += draw(
        st.lists(st.one_of(jobs(), jobs_of_jobsets(), jobsets(), workloads(), pods()), max_size=3)
    )
    return objects


def stored(client: Direct, namespace: str, objects: list[Object], *, enabled: bool) -> list[Object]:
    """The objects as the API server stores them in a new namespace; without those that it refuses.

    A JobSet after a TrainJob of its name becomes that TrainJob's, as the Trainer makes it, and a Job with the
    label of a JobSet that JobSet's.
    """
    switch = {group_labels.NAMESPACE_SWITCH: "enabled"} if enabled else {}
    accepted = [
        client.create(NAMESPACES, _body(NAMESPACES, namespace, None, labels=switch), manager="tenant")
    ]
    for drawn in objects:
        body = json.loads(json.dumps(drawn))
        body["metadata"]["namespace"] = namespace
        reference = _controller_of(body, accepted)
        if reference:
            body["metadata"]["ownerReferences"] = [reference]
        try:
            accepted.append(client.create(_resource(body), body, manager="tenant"))
        except ClusterError:
            continue
        made = accepted[-1]
        if made["kind"] == "Job" and body["metadata"]["name"] == NAME:
            accepted += _workload_of(client, made)
    return accepted


def _controller_of(body: Object, accepted: list[Object]) -> Object | None:
    """A reference to the TrainJob of a JobSet, or to the JobSet that a Job names by a label."""
    named = group_labels.JOBSET_NAME in (body["metadata"].get("labels") or {})
    kind = "TrainJob" if body["kind"] == "JobSet" else "JobSet" if body["kind"] == "Job" and named else ""
    above = next((other for other in accepted if other["kind"] == kind), None)
    if above is None:
        return None
    names = {name: above["metadata"][name] for name in ("name", "uid")}
    return {"apiVersion": above["apiVersion"], "kind": kind, **names, "controller": True}


def _workload_of(client: Direct, job: Object) -> list[Object]:
    """A Workload with Muster's labels under the name that the Job's Workload has, and its PodGroup."""
    owner = KubernetesObject.read(job).ref
    labels = {MANAGED_BY: MUSTER, OWNER_UID: owner.uid}
    gang = {"gang": {"minCount": 500}}
    spec = {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": owner.name},
        "podGroupTemplates": [{"name": "main", "schedulingPolicy": gang}],
    }
    group = {"schedulingPolicy": gang}
    bodies = (
        (WORKLOADS, _body(WORKLOADS, job_workload_name(owner), spec, labels=labels)),
        (POD_GROUPS, _body(POD_GROUPS, f"{owner.name}-main-{owner.uid[:8]}", group, labels=labels)),
    )
    made = []
    for resource, body in bodies:
        body["metadata"]["namespace"] = owner.namespace
        made.append(client.create(resource, body, manager="tenant"))
    return made


def _body(resource: Resource, name: str, spec: Any, **metadata: Any) -> Object:
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": _metadata(name, **metadata),
    }
    return body if spec is None else body | {"spec": spec}


def _resource(body: Object) -> Resource:
    known = (CONFIGMAPS, JOBS, JOBSETS, PODS, TRAINING_RUNTIMES, TRAINJOBS, WORKLOADS)
    return next(resource for resource in known if resource.kind == body["kind"])


def a_jobset_that_starts_in_turns(links: int, waiting: int) -> Object:
    """Return a JobSet with a chain of groups that start one after another, and a group that never starts.

    Args:
        links: the length of the chain.
        waiting: replicatedJobs of the group that never starts, because they wait for one another.
    """
    entries = [
        *(_single(f"a{n}", PER_JOB, replicas=2) for n in range(links)),
        *(_single(f"c{n}", after=(f"a{n}",)) for n in reversed(range(links))),
        *(_single(f"b{n}", after=(f"c{n + 1}",) if n < links - 1 else ()) for n in range(links)),
        *(
            _single(f"w{n}", PER_JOB, replicas=waiting - n + 1, label="main", after=("w0",) if n else ())
            for n in range(waiting)
        ),
    ]
    for entry in entries[2 * links : 3 * links - 1]:
        entry["dependsOn"][0]["status"] = "Ready"
    chain = [
        _gang_of_groups(f"link-{n}", 2, _basic(f"a{n}", per="Job"), _basic(f"b{n}"), _basic(f"c{n}"))
        for n in range(links)
    ]
    boxes = [_basic(f"box-{n}", groups=chain[n * 8 : n * 8 + 8]) for n in range(-(-links // 8))]
    top = _gang_of_groups("top", waiting + 1, {"name": "main", "per": "Job", **_gang(minCount=1)})
    policy = json.dumps({"workload": {"groups": [top, *boxes]}})
    return a_jobset(*entries, modifiers=[annotated({ANNOTATION: policy})])


def _single(name: str, *modifiers: Modifier, label: str = "", **options: Any) -> Object:
    return a_replicated_job(name, *modifiers, pods=1, label=label or name, **options)


def _gang(**policy: int) -> Object:
    return {"schedulingPolicy": {"gang": policy}}


def _gang_of_groups(name: str, needed: int, *groups: Object) -> Object:
    return {"name": name, **_gang(minGroupCount=needed), "groups": [*groups]}


def _basic(name: str, **more: Any) -> Object:
    return {"name": name, "schedulingPolicy": {"basic": {}}, **more}

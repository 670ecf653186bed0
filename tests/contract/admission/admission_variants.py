"""Every variant of the two admission policies, one sentence each: what comes in, what must come out.

The same YAML is asked on a real API server and on the embedded one, and the planner for the names.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

UID = "6161e02c-5d0b-4a52-9a3e-0c6a1f0f2b11"
JOB = {"batch.kubernetes.io/job-name": "sweep", "batch.kubernetes.io/controller-uid": UID}
JOBSET = {
    "jobset.sigs.k8s.io/jobset-name": "llama",
    "jobset.sigs.k8s.io/jobset-uid": UID,
    "batch.kubernetes.io/job-name": "llama-node-0",
    "batch.kubernetes.io/controller-uid": "99999999-0000-4000-8000-000000000000",
}
LABEL = {"muster.dev/group": "trainer"}
_JOB_BLOCK = {"muster.dev/group-per": "job-block", "muster.dev/group-size": "4"}
_LEADER_PER_JOB = {"muster.dev/leader-group": "driver", "muster.dev/leader-group-per": "job"}
_LONG = "n" * 63
_CONTAINERS = [{"name": "main", "image": "example.com/train"}]


def _owner(kind: str, *, controller: bool | None) -> Object:
    return {"apiVersion": "batch/v1", "kind": kind, "name": "theirs", "uid": UID, "controller": controller}


def pod(
    *labels: dict[str, str],
    annotations: dict[str, str] | None = None,
    owners: tuple[Object, ...] = (_owner("Job", controller=True),),
    **spec: Any,
) -> Object:
    """A pod as a Job controller would create it."""
    together = {key: value for some in labels for key, value in some.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "variant",
            "labels": together,
            "annotations": annotations or {},
            "ownerReferences": list(owners),
        },
        "spec": {"restartPolicy": "Never", "containers": _CONTAINERS, **spec},
    }


def _index(number: str) -> dict[str, str]:
    return {"batch.kubernetes.io/job-completion-index": number}


def _stamp(name: str, *, gate: bool = True) -> Object:
    return {"podGroupName": name, "gate": gate}


PODS: dict[str, tuple[Object, Object | None]] = {
    "a JobSet's pod is named after the JobSet": (pod(LABEL, JOBSET), _stamp("llama-trainer-6161e02c")),
    "a plain Job's pod is named after the Job": (pod(LABEL, JOB), _stamp("sweep-trainer-6161e02c")),
    "a group per job ends in the job index": (
        pod(LABEL, JOBSET, {"muster.dev/group-per": "job", "jobset.sigs.k8s.io/job-index": "3"}),
        _stamp("llama-trainer-6161e02c-3"),
    ),
    "a group size makes blocks of completion indexes": (
        pod(LABEL, JOB, {"muster.dev/group-size": "4"}, _index("11")),
        _stamp("sweep-trainer-6161e02c-2", gate=False),
    ),
    "the lowest index of a block has the gate": (
        pod(LABEL, JOB, {"muster.dev/group-size": "4"}, _index("8")),
        _stamp("sweep-trainer-6161e02c-2"),
    ),
    "other indexes have none": (pod(LABEL, JOB, _index("1")), _stamp("sweep-trainer-6161e02c", gate=False)),
    "each pod has it where the template says so": (
        pod(LABEL, JOB, _index("1"), annotations={"muster.dev/gate": "all"}),
        _stamp("sweep-trainer-6161e02c"),
    ),
    "index 0 joins the leader's group, without a suffix": (
        pod(LABEL, JOB, {"muster.dev/leader-group": "driver", "muster.dev/group-size": "4"}, _index("0")),
        _stamp("sweep-driver-6161e02c"),
    ),
    "index 1 stays with the workers": (
        pod(LABEL, JOB, {"muster.dev/leader-group": "driver", "muster.dev/group-size": "4"}, _index("1")),
        _stamp("sweep-trainer-6161e02c-0"),
    ),
    "a group per block of each Job ends in both indexes": (
        pod(LABEL, JOBSET, _JOB_BLOCK, {"jobset.sigs.k8s.io/job-index": "3"}, _index("11")),
        _stamp("llama-trainer-6161e02c-3-2", gate=False),
    ),
    "a leader is in no block of a Job": (
        pod(LABEL, JOBSET, _JOB_BLOCK, {**_LEADER_PER_JOB, "jobset.sigs.k8s.io/job-index": "3"}, _index("0")),
        _stamp("llama-driver-6161e02c-3"),
    ),
    "a leader's group that is no DNS label holds back the whole template": (
        pod(LABEL, JOB, {"muster.dev/leader-group": "Driver"}, _index("1")),
        None,
    ),
    "the gate can be turned off": (
        pod(LABEL, JOB, annotations={"muster.dev/gate": "off"}),
        _stamp("sweep-trainer-6161e02c", gate=False),
    ),
    "another gate beside ours stays": (
        pod(LABEL, JOB, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        _stamp("sweep-trainer-6161e02c"),
    ),
    "none opts out": (pod({"muster.dev/group": "none"}, JOB), None),
    "a group label that is no DNS label is left alone": (pod({"muster.dev/group": "Trainer"}, JOB), None),
    "a group of one's own is never replaced": (
        pod(LABEL, JOB, schedulingGroup={"podGroupName": "mine"}),
        None,
    ),
    "a pod that names its node is left alone": (pod(LABEL, JOB, nodeName="node-1"), None),
    "a system priority is left alone": (pod(LABEL, JOB, priorityClassName="system-cluster-critical"), None),
    "KAI's pods are left alone": (pod(LABEL, JOB, schedulerName="kai-scheduler"), None),
    "YuniKorn's pods are left alone": (pod(LABEL, JOB, schedulerName="yunikorn"), None),
    "coscheduling's pods are left alone": (
        pod(LABEL, JOB, {"scheduling.x-k8s.io/pod-group": "theirs"}),
        None,
    ),
    "pods annotated for Volcano are left alone": (
        pod(LABEL, JOB, annotations={"scheduling.k8s.io/group-name": "theirs"}),
        None,
    ),
    "a pod of another controller is in no gang": (
        pod(LABEL, JOB, owners=(_owner("ReplicaSet", controller=True),)),
        None,
    ),
    "a JobSet's UID without its name makes no invalid name": (
        pod(LABEL, JOB, {"jobset.sigs.k8s.io/jobset-uid": UID}),
        None,
    ),
    "the longest names fit": (
        pod(
            {"muster.dev/group": "g" * 63, "muster.dev/group-size": "1"},
            {"batch.kubernetes.io/job-name": _LONG, "batch.kubernetes.io/controller-uid": UID},
            _index("999999999"),
        ),
        _stamp(f"{_LONG}-{'g' * 63}-6161e02c-999999999"),
    ),
    "a copy of a Job's pod, which nothing controls, is in no gang": (pod(LABEL, JOB, owners=()), None),
    "an owner that does not control the pod makes no gang": (
        pod(LABEL, JOB, owners=tuple(_owner("Job", controller=controls) for controls in (False, None))),
        None,
    ),
    "a UID that is not hexadecimal makes no name that the policies of the accounts refuse": (
        pod(LABEL, {**JOB, "batch.kubernetes.io/controller-uid": "my-own-uid-1"}),
        None,
    ),
    "an index that is no number counts as 0": (
        pod(LABEL, JOB, {"muster.dev/group-size": "2"}, _index("first")),
        _stamp("sweep-trainer-6161e02c-0"),
    ),
}


def job(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: Object | None = None,
    template_labels: dict[str, str] | None = None,
    template_annotations: dict[str, str] | None = None,
    pod_spec: Object | None = None,
    **spec: Any,
) -> Object:
    """An Indexed Job of three pods, with defaults as admission sees it and the fields of a case."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "variant",
            "labels": labels or {},
            "annotations": annotations or {},
            "ownerReferences": [owner] if owner else [],
        },
        "spec": {
            "completionMode": "Indexed",
            "parallelism": 3,
            "completions": 3,
            "template": {
                "metadata": {"labels": template_labels or {}, "annotations": template_annotations or {}},
                "spec": {"restartPolicy": "Never", "containers": _CONTAINERS, **(pod_spec or {})},
            },
            **spec,
        },
    }


JOBS: dict[str, tuple[Object, str | None]] = {
    "an Indexed Job of several pods at once is one gang": (job(), "main"),
    "a Job of one pod is none": (job(parallelism=1, completions=1), None),
    "a Job with more completions than pods is none": (job(completions=6), None),
    "a Job without completion indexes is none": (job(completionMode="NonIndexed"), None),
    "a CronJob's Job is none unless labelled": (job(owner=_owner("CronJob", controller=True)), None),
    "an owner that is no controller does not count": (job(owner=_owner("Note", controller=False)), "main"),
    "a JobSet's Job has the label of its template": (job(owner=_owner("JobSet", controller=True)), None),
    "a group label written by hand stays": (job(template_labels={"muster.dev/group": "mine"}), None),
    "a group of one's own stays": (job(pod_spec={"schedulingGroup": {"podGroupName": "mine"}}), None),
    "a Job grouped upstream is left alone": (
        job(annotations={"scheduling.k8s.io/group-template-name": ""}),
        None,
    ),
    "Volcano's Job is left alone": (job(pod_spec={"schedulerName": "volcano"}), None),
    "coscheduling's Job is left alone": (
        job(template_labels={"scheduling.x-k8s.io/pod-group": "theirs"}),
        None,
    ),
    "a Job annotated for Volcano is left alone": (
        job(template_annotations={"scheduling.k8s.io/group-name": "theirs"}),
        None,
    ),
    "a Job that names the node of its pods is left alone": (job(pod_spec={"nodeName": "node-1"}), None),
    "a system priority is left alone": (job(pod_spec={"priorityClassName": "system-node-critical"}), None),
}


def jobset(*replicated_jobs: Object, **spec: Any) -> Object:
    """A JobSet of these replicatedJobs."""
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "variant"}}
    return {**body, "spec": {"replicatedJobs": list(replicated_jobs), **spec}}


def replicated_job(
    name: str, step: str = "", after: tuple[str, ...] = (), status: str = "Ready", **of_job: Any
) -> Object:
    """A replicatedJob with an ancestor step of the Trainer, after others; the rest as of a Job."""
    made = job(**of_job)
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step} if step else {}
    metadata = {"labels": labels, "annotations": made["metadata"]["annotations"]}
    entry = {"name": name, "template": {"metadata": metadata, "spec": made["spec"]}}
    return {**entry, "dependsOn": [{"name": one, "status": status} for one in after]} if after else entry


_PS, _WORKER = replicated_job("ps"), replicated_job("worker")
_DATA, _MODEL = (
    replicated_job(f"{what}-initializer", f"{what}-initializer") for what in ("dataset", "model")
)
_HIGH: Object = {"pod_spec": {"priorityClassName": "high"}}
_BOTH = {"ps": "main", "worker": "main"}

JOBSETS: dict[str, tuple[Object, dict[str, str]]] = {
    "replicatedJobs that start together are one gang": (jobset(_PS, _WORKER), _BOTH),
    "a single one gives the gang its name": (jobset(_WORKER), {"worker": "worker"}),
    "with InOrder each is a gang": (
        jobset(_PS, _WORKER, startupPolicy={"startupPolicyOrder": "InOrder"}),
        {"ps": "ps", "worker": "worker"},
    ),
    "one that waits for another is a gang of its own": (
        jobset(_PS, _WORKER, replicated_job("evaluator", after=("worker",))),
        {**_BOTH, "evaluator": "evaluator"},
    ),
    "those that wait for the same are one gang": (
        jobset(
            replicated_job("data"),
            replicated_job("ps", after=("data",)),
            replicated_job("worker", after=("data",)),
        ),
        {"data": "data", **_BOTH},
    ),
    "those that wait for it in another state are not": (
        jobset(
            replicated_job("data"),
            replicated_job("ps", after=("data",)),
            replicated_job("worker", "", ("data",), "Complete"),
        ),
        {"data": "data", "ps": "ps", "worker": "worker"},
    ),
    "a second gang of several has the name of its first": (
        jobset(_PS, _WORKER, replicated_job("a", after=("ps",)), replicated_job("b", after=("ps",))),
        {**_BOTH, "a": "a", "b": "a"},
    ),
    "a replicatedJob called main stays apart from those before it": (
        jobset(_PS, _WORKER, replicated_job("main", after=("ps", "worker"))),
        {"ps": "ps", "worker": "ps", "main": "main"},
    ),
    "a torch TrainJob's node is its trainer": (
        jobset(replicated_job("node", "trainer")),
        {"node": "trainer"},
    ),
    "of an MPI TrainJob the nodes are the trainer, not the launcher that waits for them": (
        jobset(replicated_job("node"), replicated_job("launcher", "trainer", ("node",))),
        {"node": "trainer", "launcher": "launcher"},
    ),
    "and the launcher is in their gang where it starts with them": (
        jobset(replicated_job("node"), replicated_job("launcher", "trainer")),
        {"node": "trainer", "launcher": "trainer"},
    ),
    "the trainer of another runtime has another name": (
        jobset(replicated_job("worker", "trainer"), replicated_job("ps")),
        {"worker": "trainer", "ps": "trainer"},
    ),
    "initializers are groups of their own": (
        jobset(
            _DATA, _MODEL, replicated_job("node", "trainer", ("dataset-initializer", "model-initializer"))
        ),
        {
            "dataset-initializer": "dataset-initializer",
            "model-initializer": "model-initializer",
            "node": "trainer",
        },
    ),
    "priorities that differ make no common gang": (
        jobset(replicated_job("driver", **_HIGH), _PS, _WORKER),
        {"driver": "driver", **_BOTH},
    ),
    "schedulers that differ make none": (
        jobset(replicated_job("driver", pod_spec={"schedulerName": "mine"}), _PS, _WORKER),
        {"driver": "driver", **_BOTH},
    ),
    "a template with a group for each Job is apart": (
        jobset(replicated_job("driver", template_labels={"muster.dev/group-per": "job"}), _PS, _WORKER),
        {"driver": "driver", **_BOTH},
    ),
    "a label written by hand stays, and the others are a gang": (
        jobset(replicated_job("driver", template_labels={"muster.dev/group": "none"}), _PS, _WORKER),
        {"driver": "none", **_BOTH},
    ),
    "pods that others group get no label": (
        jobset(
            replicated_job("a", pod_spec={"schedulerName": "volcano"}),
            replicated_job("b", pod_spec={"schedulingGroup": {"podGroupName": "mine"}}),
            replicated_job("c", pod_spec={"priorityClassName": "system-node-critical"}),
            replicated_job("d", pod_spec={"nodeName": "node-1"}),
            replicated_job("e", template_labels={"scheduling.x-k8s.io/pod-group": "theirs"}),
            replicated_job("f", template_annotations={"scheduling.k8s.io/group-name": "theirs"}),
            replicated_job("g", annotations={"scheduling.k8s.io/group-template-name": ""}),
            _PS,
            _WORKER,
        ),
        _BOTH,
    ),
}

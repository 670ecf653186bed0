"""`muster explain`: owners of files and of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from muster.cli import main
from muster.cli.explain import explain
from muster.cluster.observe.snapshot import Snapshot
from muster.data import EVENTING
from muster.simulator.apiserver import ApiServer
from muster.simulator.controllers import shipped_runtime
from muster.simulator.overlays import load
from tests.support import builders as b
from tests.unit.cli.conftest import Filed, Muster, a_config_map, assert_names

POLICY = "muster.dev/pod-group-policy"
GROUP = "llama-main-33333333"
SINCE = "2026-11-21T08:00:00Z"
NO_ROOM = "0/3 nodes are available"

Explained = Callable[..., Result]


@pytest.fixture(name="explained")
def _explained(filed: Filed) -> Explained:
    """Explain objects of a file."""

    def explain(*objects: Any, options: Sequence[str] = ()) -> Result:
        path = filed("job.yaml", yaml.safe_dump_all(objects))
        return CliRunner().invoke(main, ["explain", *options, path], env={"KUBECONFIG": ""})

    return explain


def a_plain_job(policy: str, **labels: str) -> Any:
    """A Job as a person writes it, without what the API server adds."""
    modifiers = b.annotated({POLICY: policy}), b.template_labelled(labels)
    body = b.a_job(*modifiers, label=None, pods=4)
    for field in ("uid", "resourceVersion"):
        del body["metadata"][field]
    return body


def line_of(text: str, name: str) -> str:
    """Return the one line of a text that has a name in it."""
    (line,) = (line for line in text.splitlines() if name in line)
    return line.strip()


def test_a_file_is_explained_without_a_cluster(explained: Explained) -> None:
    """The verdict, policy, groups with counts and names; what was assumed goes to standard error."""
    job = a_plain_job("workload: {groups: [{name: main}]}")
    result = explained(job)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Job team-a/llama: 1 gang")
    assert_names(line_of(result.stdout, POLICY), "Job team-a/llama")
    assert_names(line_of(result.stdout, "PodGroup llama"), "llama-main-xxxxxxxx", "4")
    assert_names(result.stderr, "team-a")
    assert "steps:" not in result.stdout
    assert_names(explained(job, options=["-v"]).stdout, "steps:", "WorkloadCreated", "PodGroupsCreated")
    job["spec"]["suspend"] = True
    assert explained(job).stdout.splitlines()[0] == "Job team-a/llama: suspended: 1 gang"


def test_lines_are_wrapped_at_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, explained: Explained
) -> None:
    """With a hanging indent; in a pipe every fact is one line."""
    plain = explained(b.a_namespace(), b.a_job(pods=1, label=None)).stdout.splitlines()
    monkeypatch.setattr("muster.cli.common.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setenv("COLUMNS", "60")
    wrapped = explained(b.a_namespace(), b.a_job(pods=1, label=None)).stdout.splitlines()
    assert max(map(len, wrapped)) <= 60 < max(map(len, plain))
    assert " ".join(" ".join(wrapped).split()) == " ".join(" ".join(plain).split())


def test_where_labels_and_policy_disagree_the_labels_to_add_are_printed(explained: Explained) -> None:
    """Path, label and value, so that users need not look them up; and the path in the policy."""
    result = explained(a_plain_job("workload: {groups: [{name: rack, size: 2}]}"))
    assert_names(result.stdout.splitlines()[0], "cannot be grouped: InvalidPolicy", "workload.groups[0].name")
    assert result.exit_code == 1
    assert_names(line_of(result.stdout, "labels: muster.dev/group: "), "spec.template.metadata", "rack")
    assert_names(line_of(result.stdout, "labels: muster.dev/group-size: "), "2")


@pytest.mark.parametrize(
    ("owner", "named"),
    [
        (b.a_job(pods=1, label=None), ("parallelism 1", "muster.dev/group")),
        (b.a_job(pods=1), ("gang of 1",)),
        (b.a_job(label="none"), ("`none`",)),
        (b.a_job(pods=7), ("EndsWhenEvicted", "backoffLimit 6")),
        (a_plain_job("workload: {onMembersLost: Fail}"), ("300 s", "its Jobs fail")),
        (
            b.a_jobset(*(b.a_replicated_job(name, label=name) for name in ("driver", "workers"))),
            ("driver and workers", "2 separate gangs"),
        ),
    ],
)
def test_notes_say_what_the_groups_do_not_guarantee(
    explained: Explained, owner: Any, named: tuple[str, ...]
) -> None:
    """A user who expects another gang reads why there is none."""
    output = explained(b.a_namespace(), owner).stdout
    notes = [line for line in output.splitlines() if line.startswith("  note: ")]
    assert_names("\n".join(notes), *named)


def test_a_policy_in_the_spec_of_a_runtime_of_a_file_is_explained(explained: Explained) -> None:
    """With the labels that mark_runtime writes before the TrainJob exists."""
    runtime = shipped_runtime("torch-distributed")
    group = {"name": "workers", "replicatedJobs": ["node"], "schedulingPolicy": {"gang": {"minCount": 2}}}
    runtime["spec"]["podGroupPolicy"] = {"workload": {"groups": [group]}}
    runtime |= {"kind": "TrainingRuntime", "metadata": {"name": "gangs", "namespace": "team-a"}}
    reference = {"name": "gangs", "kind": "TrainingRuntime"}
    result = explained(runtime, b.a_trainjob(b.with_spec(runtimeRef=reference, trainer={"numNodes": 3})))
    assert "spec.podGroupPolicy of TrainingRuntime gangs" in line_of(result.stdout, "policy:")
    assert "gang of 2 of 3 pods" in line_of(result.stdout, "workers: ")


def test_locked_fields_and_who_locked_them_are_shown(explained: Explained) -> None:
    """With the policy that applies, and with the one that a lock refuses."""
    locked = "{onFailure: Hold, disruptionMode: {all: {}}}"
    admin = a_config_map("muster-system", policy="workload: {}", locked=locked)
    text = explained(admin, a_plain_job("workload: {onFailure: Basic}")).stdout
    assert "disruptionMode: all" in line_of(text, "locked: ")
    assert_names(line_of(text, "cannot be grouped: "), "workload.onFailure", "muster-system/muster-policy")
    assert "fallback" not in text
    assert line_of(text, "its pods keep their gate")


def test_an_object_of_a_wrong_shape_is_reported_with_the_path(explained: Explained) -> None:
    """One line, exit status 2."""
    jobset = b.a_jobset({"name": "a"}, enabled=False)
    result = explained(jobset)
    assert (result.exit_code, result.stdout) == (2, "")
    assert_names(result.stderr.splitlines()[-1], "JobSet", "llama", "spec.replicatedJobs[0].template")


def refused(kind: str, message: str) -> b.Modifier:
    """A condition with status False since eight o'clock."""
    condition = {"type": kind, "status": "False", "reason": "Unschedulable", "message": message}
    return b.with_status(conditions=[condition | {"lastTransitionTime": SINCE}])


UNGATED = b.with_spec(schedulingGates=[])
NOT_PLACED = refused("muster.dev/PodGroupsScheduled", "0 of 1 group scheduled")
GROUPED = [
    b.a_job(NOT_PLACED),
    b.a_pod_group(GROUP, refused("PodGroupInitiallyScheduled", NO_ROOM)),
    b.a_pod(b.a_job(), 0, b.stamped(GROUP), UNGATED),
]


def test_a_job_of_a_cluster_says_what_it_waits_for_and_since_when(
    muster: Muster, server: ApiServer, kubeconfig: str
) -> None:
    """In the words of its conditions."""
    arguments = ["explain", "job", "llama", "-n", "team-a", "--kubeconfig", kubeconfig]
    assert muster(*arguments).exit_code == 1
    server.load(GROUPED)
    result = muster(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "Job team-a/llama: waits, Unschedulable"
    assert_names(line_of(result.stdout, "PodGroupsScheduled: "), "Unschedulable", SINCE, NO_ROOM)
    assert_names(line_of(result.stdout, "note: "), "Muster is not installed here")


@pytest.mark.parametrize("owner", [b.a_job(label=None), b.a_jobset(enabled=False), b.a_trainjob()])
def test_the_cause_of_no_gang_and_of_plans_that_nothing_carries_out(owner: Any) -> None:
    """The same for every kind: the namespace, with the value of its label, and what is not installed."""
    mistaken = b.a_namespace(b.labelled({"muster.dev/gang-jobs": "true"}))
    policies = [o for o in load(EVENTING / "admission") if o["metadata"]["name"] != "muster-mark-jobs"]
    made = b.a_jobset_of_trainjob(enabled=False)
    created = [owner, made] if owner["kind"] == "TrainJob" else [owner]

    def told(*objects: Any) -> str:
        return explain(Snapshot(list(objects)), b.ref(owner), b.NOW, verbose=True)[0]

    text = told(*policies, *created, mistaken)
    assert_names(line_of(text, "muster.dev/gang-jobs: enabled"), "the value `true`")
    assert_names(line_of(text, "missing: "), "admission policy muster-mark-jobs", "Trigger create-workload")
    unlabelled = b.with_spec(template=b.a_job(label=None)["spec"]["template"])
    older = b.a_child_job(b.a_jobset(), "workers", 0, unlabelled)
    assert "was created before" in told(*created, older, b.a_namespace())
    again = {"Job": b.a_job(), "JobSet": b.a_jobset(), "TrainJob": b.a_jobset_of_trainjob()}[owner["kind"]]
    assert_names(told(*created[:1], again, b.a_namespace()), "nothing carries it out: ")

"""The places that policies are read from, on a cluster made of files."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from muster.cluster.observe import policy_sources
from muster.cluster.observe.owner import read_owner
from muster.cluster.observe.snapshot import Snapshot
from muster.policy.sources.source import (
    ANNOTATION,
    EffectivePolicy,
    PolicySource,
    PolicySourceKind,
    policy_annotations,
    resolve_policy,
)
from muster.simulator.controllers.trainer.controller import typed_runtime
from tests.support.builders import (
    Object,
    a_jobset_of_trainjob,
    a_namespace,
    a_trainjob,
    a_workload,
    annotated,
    owned_by,
    ref,
    with_spec,
)
from tests.unit.cluster.counting import CountingSnapshot

RUNTIME: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch-distributed", "annotations": {ANNOTATION: "workload: {onScale: Flag}"}},
    "spec": {"podGroupPolicy": {"workload": {"onFailure": "Hold"}}},
}
BARE_RUNTIME: Object = {**RUNTIME, "metadata": {"name": "torch-distributed"}}
CONFIG_MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "muster-policy", "namespace": "team-a"},
    "data": {"policy": "workload: {}"},
}
ADMINISTRATORS: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "muster-policy", "namespace": "muster-system"},
    "data": {"policy": "workload: {onScale: Flag}"},
}
LOCKING: Object = {**ADMINISTRATORS, "data": {"locked": "onFailure: Hold"}}


def the_snapshot(text: str, trainjob: Object) -> Object:
    """The ConfigMap in which the Trainer keeps a TrainJob's runtime."""
    body: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "llama-runtime-snapshot", "namespace": "team-a", "uid": "s"},
        "data": {"runtime": text},
    }
    owned_by(trainjob)(body)
    return body


def found(
    *objects: Object, trainjob: Object | None = None, jobset: Object | None = None
) -> list[PolicySource]:
    """The policy sources that create_workload reads for the TrainJob."""
    trainjob = trainjob or a_trainjob()
    world = [a_namespace(), trainjob, jobset or a_jobset_of_trainjob(), *objects]
    live, _ = read_owner(Snapshot(copy.deepcopy(world)), ref(trainjob))
    return list(live.sources)


ON_TRAINJOB = a_trainjob(annotated({ANNOTATION: "workload: {}"}))
ON_JOBSET = a_jobset_of_trainjob(modifiers=(annotated({ANNOTATION: "workload: {}"}),))


@pytest.mark.parametrize(
    ("given", "kind", "named"),
    [
        pytest.param(
            {"objects": [ADMINISTRATORS]},
            PolicySourceKind.CLUSTER,
            "ConfigMap muster-system/muster-policy",
            id="the administrator's namespace",
        ),
        pytest.param(
            {"objects": [ADMINISTRATORS, CONFIG_MAP]},
            PolicySourceKind.NAMESPACE,
            "ConfigMap team-a/muster-policy",
            id="the namespace comes before the administrator's",
        ),
        pytest.param(
            {"objects": [CONFIG_MAP]},
            PolicySourceKind.NAMESPACE,
            "ConfigMap team-a/muster-policy",
            id="the namespace",
        ),
        pytest.param(
            {"objects": [CONFIG_MAP, BARE_RUNTIME]},
            PolicySourceKind.RUNTIME_SPEC,
            "ClusterTrainingRuntime torch-distributed",
            id="a field of the runtime comes before the namespace",
        ),
        pytest.param(
            {"objects": [CONFIG_MAP, RUNTIME]},
            PolicySourceKind.RUNTIME,
            "ClusterTrainingRuntime torch-distributed",
            id="an annotation of the runtime comes before its field",
        ),
        pytest.param(
            {"objects": [RUNTIME], "jobset": ON_JOBSET},
            PolicySourceKind.OWNER,
            "JobSet team-a/llama",
            id="the JobSet comes before the runtime",
        ),
        pytest.param(
            {"objects": [RUNTIME], "jobset": ON_JOBSET, "trainjob": ON_TRAINJOB},
            PolicySourceKind.OWNER,
            "TrainJob team-a/llama",
            id="the TrainJob comes first",
        ),
    ],
)
def test_the_highest_source_is_read(given: dict[str, Any], kind: PolicySourceKind, named: str) -> None:
    """Owner, its JobSet, annotation of the runtime, field of the runtime, ConfigMap: in this order."""
    (source,) = found(*given.pop("objects", []), **given)
    assert source.kind == kind
    assert named in source.where


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(yaml.safe_dump(typed_runtime(BARE_RUNTIME)), id="as the Trainer writes it"),
        pytest.param(yaml.safe_dump(BARE_RUNTIME), id="with a policy that a tenant wrote into it"),
        pytest.param("spec: {", id="no YAML"),
        pytest.param("a: &a [x]\nb: &b [*a, *a]\nspec: *b", id="aliases"),
    ],
)
def test_the_trainers_snapshot_of_a_runtime_is_not_read(text: str) -> None:
    """It counts for pod templates only: it lacks the policy, and a tenant can write it."""
    (source,) = found(RUNTIME, CONFIG_MAP, the_snapshot(text, a_trainjob()))
    assert source.kind == PolicySourceKind.RUNTIME
    (source,) = found(CONFIG_MAP, the_snapshot(text, a_trainjob()))
    assert source.kind == PolicySourceKind.NAMESPACE


def test_locked_fields_come_with_the_policy_that_is_highest() -> None:
    """And alone if there is no policy."""
    assert [source.kind for source in found(LOCKING)] == [PolicySourceKind.LOCKED]
    kinds = [source.kind for source in found(LOCKING, CONFIG_MAP, trainjob=ON_TRAINJOB)]
    assert kinds == [PolicySourceKind.LOCKED, PolicySourceKind.OWNER]


def test_only_the_administrators_namespace_locks_fields() -> None:
    """A tenant's ConfigMap of the same name locks nothing."""
    tenants = {**CONFIG_MAP, "data": {"locked": "onFailure: Hold"}}
    assert found(tenants) == []


def test_the_policy_namespace_is_a_setting() -> None:
    """An installation for one namespace reads its own ConfigMap once, unless another is configured."""
    trainjob = a_trainjob()
    body = {**CONFIG_MAP, "data": {"policy": "workload: {}", "locked": "onFailure: Hold"}}
    counted = CountingSnapshot(trainjob, a_jobset_of_trainjob(), body)
    counted.policy_namespace = "team-a"
    live, _ = read_owner(counted, ref(trainjob))
    assert [source.kind for source in live.sources] == [PolicySourceKind.LOCKED, PolicySourceKind.CLUSTER]
    assert counted.reads.count("get ConfigMap muster-policy") == 1


def test_an_owner_with_a_workload_costs_no_read_of_a_policy() -> None:
    """Its Workload keeps policy and locks; without it the locks cost one read."""
    trainjob = a_trainjob()
    world = [trainjob, a_jobset_of_trainjob(), RUNTIME, LOCKING]
    before, after = CountingSnapshot(*world), CountingSnapshot(*world, a_workload(root=trainjob))
    read_owner(before, ref(trainjob))
    read_owner(after, ref(trainjob))
    assert before.reads.count("get ConfigMap muster-policy") == 1
    assert not any("ConfigMap" in read for read in after.reads)


def test_without_a_policy_there_is_no_source() -> None:
    """The built-in default applies."""
    assert found() == []


def test_a_namespaced_runtime_is_read_in_the_namespace_of_the_trainjob() -> None:
    """A TrainingRuntime of the same name elsewhere is another one."""
    trainjob = a_trainjob(with_spec(runtimeRef={"name": "mine", "kind": "TrainingRuntime"}))
    runtime = {**RUNTIME, "kind": "TrainingRuntime", "metadata": {**RUNTIME["metadata"], "name": "mine"}}
    mine = {**runtime, "metadata": {**runtime["metadata"], "namespace": "team-a"}}
    elsewhere = {**runtime, "metadata": {**runtime["metadata"], "namespace": "team-b"}}
    assert [source.kind for source in found(mine, trainjob=trainjob)] == [PolicySourceKind.RUNTIME]
    assert found(elsewhere, trainjob=trainjob) == []


def test_a_workload_that_exists_keeps_its_policy() -> None:
    """A new policy in the namespace counts for the next owner, not for one whose groups were made."""
    policy = resolve_policy((PolicySource(PolicySourceKind.NAMESPACE, "then", "workload: {onScale: Flag}"),))
    assert isinstance(policy, EffectivePolicy)
    made = a_workload(root=a_trainjob(), modifiers=(annotated(policy_annotations(policy)),))
    (source,) = found(CONFIG_MAP, RUNTIME, made)
    assert (source.kind, source.where) == (PolicySourceKind.STORED, "then")
    assert found(CONFIG_MAP, RUNTIME, a_workload(root=a_trainjob())) == []


def test_a_workload_of_another_owner_keeps_no_policy() -> None:
    """It has the name, but was made for an earlier TrainJob."""
    earlier = a_trainjob(lambda job: job["metadata"].update(uid="earlier"))
    assert [source.kind for source in found(CONFIG_MAP, a_workload(root=earlier))] == [
        PolicySourceKind.NAMESPACE
    ]


def test_all_sources_are_listed_highest_first() -> None:
    """For `muster explain`, which shows the hidden ones as well."""
    cluster = Snapshot([RUNTIME, CONFIG_MAP])
    live, _ = read_owner(Snapshot([a_namespace(), ON_TRAINJOB, a_jobset_of_trainjob()]), ref(ON_TRAINJOB))
    assert live.owner is not None
    kinds = [source.kind for source in policy_sources.of_owner(cluster, live.owner, live.runner)]
    assert kinds == [
        PolicySourceKind.OWNER,
        PolicySourceKind.RUNTIME,
        PolicySourceKind.RUNTIME_SPEC,
        PolicySourceKind.NAMESPACE,
    ]

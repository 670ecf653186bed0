"""`muster check` reads every policy in the cluster, and what the administrator locked."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.errors import Forbidden
from muster.cluster.interface import Object, Objects
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource
from muster.operator.check import Finding, Level, check_policies, policy_namespace
from muster.simulator.overlays import built, load
from tests.support.builders import a_job, a_namespace, annotated
from tests.support.runtimes import a_runtime

POLICY = "muster.dev/pod-group-policy"
ADMIN = "muster-system"


def a_config_map(namespace: str, **data: str) -> Object:
    """A ConfigMap `muster-policy`."""
    metadata = {"name": "muster-policy", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def findings(*objects: Object) -> list[Finding]:
    """The findings about policies, without the last one, which counts the valid."""
    *found, last = check_policies(Snapshot([a_namespace(), *objects]), ADMIN)
    assert (last.level, last.about) == (Level.OK, "policies")
    return found


@pytest.mark.parametrize(
    ("body", "level", "about"),
    [
        pytest.param(a_config_map("team-a", policy="!!bool x"), Level.FAIL, "team-a/", id="a namespace's"),
        pytest.param(a_config_map(ADMIN, policy="[]"), Level.FAIL, "key policy", id="the administrator's"),
        pytest.param(a_config_map(ADMIN, locked="minCount: 3"), Level.FAIL, "key locked", id="the locks"),
        pytest.param(a_runtime("workload: {x: 1}"), Level.FAIL, "Runtime mpi", id="a runtime's annotation"),
        pytest.param(
            a_runtime(None, spec={"podGroupPolicy": {"workload": {"x": 1}}}),
            Level.FAIL,
            "spec.podGroupPolicy",
            id="a runtime's field",
        ),
        pytest.param(a_job(annotated({POLICY: "x"})), Level.WARN, "Job team-a/llama", id="an owner's"),
        pytest.param(
            a_config_map("team-a", locked="onFailure: Hold"), Level.WARN, "key locked", id="misplaced locks"
        ),
    ],
)
def test_an_invalid_policy_is_reported(body: Object, level: Level, about: str) -> None:
    """FAIL where it concerns several owners."""
    (finding,) = findings(body)
    assert finding.level == level
    assert about in finding.about


def test_a_policy_that_a_lock_refuses_is_reported() -> None:
    """It is valid without the lock."""
    policy = a_config_map("team-a", policy="workload: {onFailure: Basic}")
    assert findings(policy) == []
    (finding,) = findings(policy, a_config_map(ADMIN, locked="onFailure: Hold"))
    assert "workload.onFailure" in finding.message


def test_valid_policies_are_counted() -> None:
    """Locks are counted too."""
    objects = [
        a_config_map(ADMIN, policy="workload: {}", locked="onFailure: Hold"),
        a_config_map("team-a", policy="workload: {}"),
        a_runtime("workload: {}"),
        a_job(annotated({POLICY: "workload: {}"})),
    ]
    (last,) = check_policies(Snapshot(objects), ADMIN)
    assert last.message.startswith("5 ")


class _ForbiddenConfigMaps(Snapshot):
    """ConfigMaps may not be listed."""

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """As the snapshot's, but for ConfigMaps."""
        if resource.kind == "ConfigMap":
            raise Forbidden("configmaps is forbidden", status=403)
        return super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)


def test_a_forbidden_read_is_a_warning() -> None:
    """The other sources are checked all the same."""
    cluster: Any = _ForbiddenConfigMaps([a_job(annotated({POLICY: "x"}))])
    first, second, _ = check_policies(cluster, ADMIN)
    assert "Job team-a/llama" in first.about
    assert (second.level, second.about) == (Level.WARN, "policies of configmaps")


@pytest.mark.parametrize(("overlay", "namespace"), [("cluster", ADMIN), ("one-namespace", "team-a")])
def test_the_policy_namespace_is_that_of_the_installed_functions(overlay: str, namespace: str) -> None:
    """By their Services."""
    assert policy_namespace(load(built(overlay))) == namespace

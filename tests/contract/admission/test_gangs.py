"""stamp-gangs and check-gangs, on the embedded API server and on the real ones: names, gates and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from muster.data import EVENTING
from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod
from muster.objects.resources import SchedulingApi
from muster.policy.group_labels import GATE
from muster.policy.groups.gathered import GatheredPods
from muster.simulator.apiserver import ApiServer
from tests.cluster import manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.processes import until
from tests.contract.admission.admission_variants import UID, Object, pod
from tests.contract.conftest import EVERY_SERVER, Servers

pytestmark = pytest.mark.timeout(300)
POLICIES = [EVENTING / "admission" / f"{name}.yaml" for name in ("stamp-gangs", "stamp-pods", "check-gangs")]
DRY_RUN = {"dryRun": "All"}
SIZED = {"muster.dev/min-count": "4"}
LABEL = {"example.com/run": "r7"}
BY = {"muster.dev/gang-by": "example.com/run"}


def _of(name: str, kind: str = "StatefulSet") -> tuple[Object, ...]:
    return ({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": UID, "controller": True},)


@pytest.fixture(scope="module", params=EVERY_SERVER)
def api(servers: Servers, request: pytest.FixtureRequest) -> Iterator[KubernetesApi]:
    """A server with the policies."""
    policies = list(manifests.documents(POLICIES))
    if request.param == "embedded":
        with ApiServer() as server:
            api = KubernetesApi(server.url)
            manifests.apply(api, policies)
            yield api
        return
    api = servers.get(request.param).api
    manifests.apply(api, policies)
    assert until(lambda: "schedulingGroup" in _sent(api, pod(SIZED)).body.get("spec", {}), 90)
    assert until(lambda: _sent(api, pod({"muster.dev/min-count": "x"})).status == 422, 90)
    yield api
    for policy in policies:
        api.must("DELETE", manifests.path(policy))


@pytest.mark.parametrize(
    ("born", "name"),
    [
        pytest.param(pod(SIZED, owners=_of("web")), "web-main-6161e02c", id="the controller"),
        pytest.param(pod(SIZED, {"muster.dev/group": "a"}), "theirs-a-6161e02c", id="a group, of a Job too"),
        pytest.param(pod(SIZED, {"muster.dev/gang": "mine"}, owners=()), "mine", id="a name of its own"),
        pytest.param(pod(SIZED, LABEL, annotations=BY), "r7-main", id="the label that it names"),
        pytest.param(pod(SIZED, owners=_of(f"{'n' * 250}")), f"{'n' * 49}-main-6161e02c", id="a long name"),
        pytest.param(pod(SIZED, owners=_of(f"{'n' * 48}.x")), f"{'n' * 48}-main-6161e02c", id="cut at a dot"),
        pytest.param(pod({"muster.dev/min-count": "all"}, owners=_of("w")), "w-main-6161e02c", id="all"),
    ],
)
def test_a_pod_gets_the_name_of_its_gang(api: KubernetesApi, born: Object, name: str) -> None:
    """As its schedulingGroup, with the gate, and as a label by which its members are found."""
    stored = _sent(api, born).body
    labels, spec = stored["metadata"]["labels"], stored["spec"]
    assert (spec["schedulingGroup"], labels["muster.dev/gang"]) == ({"podGroupName": name}, name)
    assert (spec["schedulingGates"], labels["muster.dev/gated"]) == ([{"name": GATE}], "true")
    group = ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "default", name)
    owner = GatheredPods(group, SchedulingApi(), pods=(Pod.read({**stored, "kind": "Pod"}),)).owner
    assert (owner is not None) == name.endswith(UID[:8])


@pytest.mark.parametrize(
    ("born", "why"),
    [
        pytest.param(pod({"muster.dev/min-count": "0"}), "must be a number from 1 to 999999, or all", id="0"),
        pytest.param(pod({"muster.dev/min-count": "x"}), "must be a number from 1 to 999999, or all", id="x"),
        pytest.param(pod(SIZED, {"muster.dev/group": "g" * 41}), "at most 40 characters", id="a long group"),
        pytest.param(pod(SIZED, owners=()), "the pod is in no gang", id="no controller"),
        pytest.param(pod(SIZED, annotations=BY), "the pod is in no gang", id="no such label"),
        pytest.param(pod(SIZED, nodeName="node-1"), "the pod is in no gang", id="on a node"),
        pytest.param(
            pod(SIZED, {"muster.dev/gang": "No_Name"}), "must be a name for a PodGroup", id="a name"
        ),
        pytest.param(pod({"muster.dev/min-count": "all"}), "all needs a StatefulSet", id="all of a Job"),
    ],
)
def test_a_pod_that_can_be_in_no_gang_is_refused(api: KubernetesApi, born: Object, why: str) -> None:
    """With the reason: it would run alone without a word."""
    answer = _sent(api, born)
    assert (answer.status, why in str(answer.message)) == (422, True), answer.body


@pytest.mark.parametrize(
    "spec", [{"schedulerName": "volcano"}, {"schedulingGroup": {"podGroupName": "mine"}}]
)
def test_pods_of_others_are_left_alone(api: KubernetesApi, spec: dict[str, Any]) -> None:
    """Of another gang scheduler, or in a group of the user's own."""
    born = pod(SIZED, **spec)
    stored = _sent(api, born).body
    assert stored["metadata"]["labels"] == born["metadata"]["labels"]
    assert "schedulingGates" not in stored["spec"]


def _sent(api: KubernetesApi, sent: Object) -> Any:
    return api.request("POST", "/api/v1/namespaces/default/pods", sent, query=DRY_RUN)

"""Contract cases for API servers with feature gates off, run by stories whose clusters have such gates."""

from __future__ import annotations

from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster.api import KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.contract import answers
from tests.contract.bodies import composite, composite_group, groups, job, jobs, pod_group, template, workload
from tests.contract.case import Cases, Conversation
from tests.contract.real import converse

case = Cases(__name__)

TOPOLOGY = {"topology": [{"key": "rack"}]}
REFERENCE = {"workloadName": "work", "templateName": "main"}


@case()
def optional_gates_off(api: Conversation, ns: str) -> None:
    """GenericWorkload alone: no composites, parents or constraints, and a Workload of trees is empty."""
    answer = api.request("GET", groups(ns, "compositepodgroups", version="v1alpha3"))
    assert answer.status == 404
    tree = workload("tree", compositePodGroupTemplates=[composite("root", template())])
    answer = api.request("POST", groups(ns, "workloads"), tree)
    assert (answer.status, answer.causes) == (422, [("FieldValueInvalid", "spec")])
    made = api.must(
        "POST", groups(ns, "workloads"), workload("work", template(schedulingConstraints=TOPOLOGY))
    )
    assert made["spec"]["podGroupTemplates"][0]["schedulingConstraints"] is None
    child = pod_group(
        parentCompositePodGroupName="root", workloadRef=REFERENCE, schedulingConstraints=TOPOLOGY
    )
    spec = api.must("POST", groups(ns, "podgroups"), child)["spec"]
    assert not {"parentCompositePodGroupName", "schedulingConstraints"} & spec.keys()


@case()
def all_gates_off(api: Conversation, ns: str) -> None:
    """With Kubernetes' default gates no kind is served, and schedulingGroup of pods is silently dropped."""
    for plural, version, body in (
        ("workloads", "v1beta1", workload()),
        ("podgroups", "v1beta1", pod_group()),
        ("compositepodgroups", "v1alpha3", composite_group()),
    ):
        assert api.request("GET", groups(ns, plural, version=version)).status == 404
        assert api.request("POST", groups(ns, plural, version=version), body).status == 404
    grouped = job(suspend=True, template={"schedulingGroup": {"podGroupName": "group"}})
    made = api.must("POST", jobs(ns), grouped)
    assert "schedulingGroup" not in made["spec"]["template"]["spec"]


def difference(cluster: RealCluster, key: str, gates: Gates) -> str:
    """Return the difference between the embedded server and a real one with the same gates."""
    (chosen,) = (obj for obj in case.all if obj.key == key)
    recorded = converse(cluster, chosen)
    with ApiServer(gates=gates) as server:
        api = KubernetesApi(server.url)
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "case"}})
        conversation = Conversation(api, "case")
        chosen.run(conversation, "case")
    return answers.difference(recorded, conversation.entries)

"""What API servers answer whose feature gates are off: cases for stages that stand with such gates anyway."""

from __future__ import annotations

from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
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
    """As Kubernetes ships: none of the kinds is served, and a Job's pods lose their group without a word."""
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


def difference(cluster: Cluster, key: str, gates: Gates) -> str:
    """Returns what the embedded server answers otherwise than a real one with the same gates, or nothing.

    Raises:
        AssertionError: the rule of the case does not hold on one of them.
    """
    (chosen,) = (one for one in case.all if one.key == key)
    recorded = converse(cluster, chosen)
    with ApiServer(gates=gates) as server:
        api = Api(server.url)
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "case"}})
        conversation = Conversation(api, "case")
        chosen.run(conversation, "case")
    return answers.difference(recorded, conversation.entries)

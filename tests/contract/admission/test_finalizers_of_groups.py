"""The accounts that create groups may give them no finalizer, which would hold up the deletion of owners."""

from __future__ import annotations

import pytest

from muster.simulator.apiserver import ApiServer
from tests.cluster.api import KubernetesApi
from tests.contract.accounts import account, musters, refused
from tests.contract.bodies import FINALIZER, composite_group, groups, job, jobs, pod_group, workload
from tests.contract.case import Conversation


@pytest.mark.parametrize(
    ("name", "plural", "body", "version"),
    [
        ("create-workload", "workloads", workload("made"), "v1beta1"),
        ("create-workload", "podgroups", pod_group("made"), "v1beta1"),
        ("create-pod-groups", "podgroups", pod_group("made"), "v1beta1"),
        ("create-pod-groups", "compositepodgroups", composite_group("made"), "v1alpha3"),
        ("resize-gang", "compositepodgroups", composite_group("made"), "v1alpha3"),
    ],
)
def test_an_account_creates_no_finalizer(
    name: str, plural: str, body: dict[str, object], version: str
) -> None:
    """Apart from that which the API server gives PodGroups itself; no other kind would ever lose it."""
    with ApiServer() as server:
        api = KubernetesApi(server.url)
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "team-a"}})
        conversation = Conversation(api, "team-a")
        made = musters(body, conversation.must("POST", jobs("team-a"), job("owner")))
        path = groups("team-a", plural, version=version)
        function = account(conversation, name, "POST", path, body)
        made["metadata"]["finalizers"] = [FINALIZER, "example.com/never"]
        assert refused(function.request("POST", path, made), name)
        made["metadata"]["finalizers"] = [FINALIZER]
        answer = function.request("POST", path, made)
        assert answer.ok if plural == "podgroups" else refused(answer, name)

"""Runs contract cases on the real servers."""

from __future__ import annotations

from tests.cluster import manifests
from tests.cluster.cluster import RealCluster
from tests.contract.answers import Entries
from tests.contract.case import ContractCase, Conversation


def converse(cluster: RealCluster, case: ContractCase) -> Entries:
    """Run a case in a namespace of its own, and return requests and answers.

    Raises:
        AssertionError: the rule does not hold.
    """
    namespace = f"{case.subject}-{case.key}".replace("_", "-")[:63].strip("-")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    manifests.apply(cluster.api, [home])
    conversation = Conversation(cluster.api, namespace)
    case.run(conversation, namespace)
    return conversation.entries

"""Asking what one may do: SelfSubjectAccessReview, which functions create when they start."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def _review(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}


@case(releases=BOTH)
def allowed(api: Conversation, ns: str) -> None:
    """An account that may do everything gets 201 with that answer, and the question comes back."""
    attributes = {"verb": "patch", "group": "batch", "resource": "jobs", "subresource": "status"}
    answer = api.request("POST", REVIEWS, _review(resourceAttributes=attributes | {"namespace": ns}))
    assert answer.status == 201
    assert answer.body["status"] == {"allowed": True}
    assert answer.body["spec"]["resourceAttributes"] == attributes | {"namespace": ns}


@case(releases=BOTH)
def everywhere(api: Conversation, ns: str) -> None:
    """Without a namespace the question is about all of them, served or not does not matter."""
    attributes = {"verb": "list", "group": "none.muster.dev", "resource": "gadgets"}
    assert api.must("POST", REVIEWS, _review(resourceAttributes=attributes))["status"]["allowed"]

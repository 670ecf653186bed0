"""What a server says about itself."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


@case()
def scheduling_versions(api: Conversation, ns: str) -> None:
    """scheduling.k8s.io is served as v1, v1beta1 and v1alpha3, v1 preferred."""
    found = api.must("GET", "/apis/scheduling.k8s.io")
    assert [version["version"] for version in found["versions"]] == ["v1", "v1beta1", "v1alpha3"]
    assert found["preferredVersion"]["version"] == "v1"


@case(releases=("1.36",))
def older_scheduling_versions(api: Conversation, ns: str) -> None:
    """1.36 serves v1 and v1alpha2."""
    found = api.must("GET", "/apis/scheduling.k8s.io")
    assert [version["version"] for version in found["versions"]] == ["v1", "v1alpha2"]


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

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


@case(releases=BOTH)
def no_resource(api: Conversation, ns: str) -> None:
    """A question may be about a path that is no resource."""
    attributes = {"path": "/apis", "verb": "get"}
    assert api.must("POST", REVIEWS, _review(nonResourceAttributes=attributes))["status"]["allowed"]


@case(releases=BOTH)
def about_nothing(api: Conversation, ns: str) -> None:
    """A question about neither a resource nor a path is refused with 422."""
    answer = api.request("POST", REVIEWS, _review())
    assert (answer.status, answer.reason) == (422, "Invalid")


@case(releases=BOTH)
def about_both(api: Conversation, ns: str) -> None:
    """A question about a resource and a path is refused with 422."""
    both = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    answer = api.request("POST", REVIEWS, _review(nonResourceAttributes={"path": "/", "verb": "get"}, **both))
    assert (answer.status, answer.reason) == (422, "Invalid")


@case(releases=BOTH)
def never_stored(api: Conversation, ns: str) -> None:
    """Reviews can only be created: there is nothing to list, and nothing to get."""
    assert api.request("GET", REVIEWS).status == 405
    assert api.request("GET", f"{REVIEWS}/one").status == 404


@case(releases=BOTH)
def its_discovery(api: Conversation, ns: str) -> None:
    """Discovery says that it is in no namespace and knows `create` alone."""
    found = api.api.must("GET", "/apis/authorization.k8s.io/v1")["resources"]
    (entry,) = [resource for resource in found if resource["name"] == "selfsubjectaccessreviews"]
    assert (entry["namespaced"], entry["verbs"]) == (False, ["create"])

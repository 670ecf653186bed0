"""SelfSubjectAccessReview: nobody signs in here, so everybody may do everything."""

from __future__ import annotations

from eventing.local.apiserver.decoding import Decoder
from eventing.local.apiserver.requests import Answer, Request, Target
from eventing.local.apiserver.schemas import Schema
from eventing.local.apiserver.status import invalid, invalid_object

_ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def answer(target: Target, request: Request, meta: Schema) -> Answer:
    """The question with its answer; nothing is stored.

    Raises:
        ApiError: 422, it is about nothing, or about a resource and a path at once
            (`ValidateSelfSubjectAccessReview`, pkg/apis/authorization/validation, v1.37.1).
    """
    request.check_options("CreateOptions")
    review = Decoder(target.kind, meta).read(target.decodes(request))
    spec = review.get("spec") or {}
    if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
        about = spec.get("resourceAttributes")
        raise invalid_object(target.kind.group, "", "", [invalid("spec", about, _ONE_OF_TWO)])
    identity = {"apiVersion": target.kind.api_version, "kind": target.kind.kind}
    return Answer(201, {**identity, "metadata": {}, "spec": spec, "status": {"allowed": True}})

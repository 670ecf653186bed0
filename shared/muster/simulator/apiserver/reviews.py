"""SelfSubjectAccessReview: nobody signs in here, so everybody may do everything."""

from __future__ import annotations

from muster.simulator.apiserver.decoding import Decoder
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.requests import Answer, Request, Target
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import FieldError, invalid, invalid_object

_ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NOT_BOTH = "cannot be specified in combination with resourceAttributes"


def answer(target: Target, request: Request, meta: Schema, release: str) -> Answer:
    """The question with its answer; nothing is stored.

    Raises:
        ApiError: 422, it is about nothing, or about a resource and a path at once.
    """
    request.check_options("CreateOptions")
    review = Decoder(target.kind, meta).read(target.decodes(request))
    spec = review.get("spec") or {}
    if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
        raise invalid_object(target.kind.group, "", "", [_fault(spec, release)])
    identity = {"apiVersion": target.kind.api_version, "kind": target.kind.kind}
    return Answer(201, {**identity, "metadata": {}, "spec": spec, "status": {"allowed": True}})


def _fault(spec: Object, release: str) -> FieldError:
    """What is wrong with a question, in a release's words (pkg/apis/authorization/validation)."""
    about = spec.get("resourceAttributes")
    if release != "1.36":
        return invalid("spec", about, _ONE_OF_TWO)
    if about is not None:
        return invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], _NOT_BOTH)
    return invalid("spec.resourceAttributes", None, _ONE_OF_TWO)

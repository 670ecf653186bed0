"""Media types of requests and answers: JSON, protobuf as typed clients send it, and others."""

from __future__ import annotations

import json

from tests.contract.bodies import core, job, jobs
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
PROTOBUF = "application/vnd.kubernetes.protobuf"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def message(api_version: str, kind: str, raw: bytes) -> bytes:
    """An object in Kubernetes' protobuf envelope; texts and `raw` must be shorter than 128 bytes."""
    kind_of = b"\x0a" + sized(api_version.encode()) + b"\x12" + sized(kind.encode())
    return b"k8s\x00\x0a" + sized(kind_of) + b"\x12" + sized(raw) + b"\x1a\x00\x22\x00"


def sized(data: bytes) -> bytes:
    """Bytes with their length before them, below 128."""
    assert len(data) < 128
    return bytes([len(data)]) + data


METADATA = b'\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
"""The empty fields of ObjectMeta after its name, as Go writes them."""


def _metadata(name: str) -> bytes:
    return b"\x0a" + sized(b"\x0a" + sized(name.encode()) + METADATA)


@case(releases=BOTH)
def created_from_protobuf(api: Conversation, ns: str) -> None:
    """A ConfigMap as `kubectl create configmap` sends it: the object is that of the same JSON."""
    body = message("v1", "ConfigMap", _metadata("map") + b"\x12" + sized(b"\x0a\x01a\x12\x01b"))
    query = {"fieldManager": "kubectl-create", "fieldValidation": "Strict"}
    answer = api.request("POST", core(ns, "configmaps"), body, PROTOBUF, query)
    assert (answer.status, answer.body["data"]) == (201, {"a": "b"})


@case(releases=BOTH)
def bytes_that_are_no_utf_8(api: Conversation, ns: str) -> None:
    """The managedFields of a Job may have some: Muster reads the list all the same (`answer_json.parsed`)."""
    entry = {"manager": "a", "operation": "Update", "apiVersion": "batch/v1", "fieldsType": "FieldsV1"}
    entry["fieldsV1"] = "<fields>"
    odd = job("odd")
    odd["metadata"]["managedFields"] = [entry]
    body = json.dumps(odd).encode().replace(b'"<fields>"', b'{"f:metadata": {"f:labels": {"f:\xff": {}}}}')
    assert api.request("POST", jobs(ns), body).status == 201
    (stored,) = api.must("GET", jobs(ns))["items"]
    assert "f:\N{REPLACEMENT CHARACTER}" in json.dumps(
        stored["metadata"]["managedFields"], ensure_ascii=False
    )


@case(releases=BOTH)
def job_from_protobuf(api: Conversation, ns: str) -> None:
    """A Job as `kubectl create job` sends it: zero values that Go always writes are unset fields."""
    container = b"\x0a\x04main\x12\x07busybox\x2a\x00\x42\x00\x6a\x00\x72\x00\x80\x01\x00\x88\x01\x00"
    container += b"\x90\x01\x00\xa2\x01\x00"
    pod = b"\x12" + sized(container) + b"\x1a\x05Never"
    pod += b"\x32\x00\x42\x00\x52\x00\x58\x00\x60\x00\x68\x00\x82\x01\x00\x8a\x01\x00\x9a\x01\x00"
    template = b"\x12" + sized(pod)
    body = message("batch/v1", "Job", _metadata("job") + b"\x12" + sized(b"\x08\x00\x32" + sized(template)))
    answer = api.request("POST", jobs(ns), body, PROTOBUF)
    assert answer.status == 201
    assert answer.body["spec"]["parallelism"] == 0, "a pointer to zero is set"
    assert "hostNetwork" not in answer.body["spec"]["template"]["spec"]


@case(releases=BOTH)
def review_from_protobuf(api: Conversation, ns: str) -> None:
    """`kubectl auth can-i create pods` as kubectl sends it."""
    attributes = b"\x0a" + sized(ns[:8].encode()) + b'\x12\x06create\x1a\x00"\x01**\x04pods2\x00:\x00'
    raw = b"\x0a" + sized(b"\x0a\x00" + METADATA) + b"\x12" + sized(b"\x0a" + sized(attributes))
    body = message(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        raw + b"\x1a\x08\x08\x00\x12\x00\x1a\x00\x20\x00",
    )
    answer = api.api.request("POST", REVIEWS, body, PROTOBUF)
    assert answer.status == 201
    assert answer.body["status"]["allowed"] is True
    assert answer.body["spec"]["resourceAttributes"]["resource"] == "pods"


@case(releases=BOTH)
def deleted_with_protobuf(api: Conversation, ns: str) -> None:
    """DeleteOptions in protobuf: preconditions hold."""
    api.must("POST", core(ns, "configmaps"), {"metadata": {"name": "map"}})
    options = message("v1", "DeleteOptions", b"\x12" + sized(b"\x0a\x04none"))
    answer = api.request("DELETE", core(ns, "configmaps", "map"), options, PROTOBUF)
    assert (answer.status, answer.reason) == (409, "Conflict")


@case(releases=BOTH)
def json_beside_protobuf(api: Conversation, ns: str) -> None:
    """A client that prefers another media type and takes JSON too gets JSON."""
    api.must("POST", core(ns, "configmaps"), {"metadata": {"name": "map"}})
    path = core(ns, "configmaps", "map")
    answer = api.request("GET", path, accept="application/vnd.example,application/json")
    assert answer.body["kind"] == "ConfigMap"


@case(releases=BOTH)
def nothing_acceptable(api: Conversation, ns: str) -> None:
    """A client that takes no media type of the server's is refused with 406."""
    answer = api.request("GET", core(ns, "configmaps"), accept="application/vnd.example")
    assert (answer.status, answer.reason) == (406, "NotAcceptable")


@case(releases=BOTH)
def unreadable_media_type(api: Conversation, ns: str) -> None:
    """A body in a media type that the server does not read is refused with 415."""
    body = {"metadata": {"name": "map"}}
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        answer = api.request("POST", core(ns, "configmaps"), body, content_type)
        assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


@case(releases=BOTH)
def broken_protobuf(api: Conversation, ns: str) -> None:
    """Protobuf that ends within a field is refused with 400."""
    body = message("v1", "ConfigMap", _metadata("map"))[:-12]
    answer = api.request("POST", core(ns, "configmaps"), body, PROTOBUF)
    assert answer.status == 400

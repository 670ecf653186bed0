"""What typed clients of Go and kubectl meet beside the contract cases: refusals that say what to do."""

from __future__ import annotations

import pytest

from muster.simulator.apiserver import ApiServer
from muster.simulator.apiserver.http import protobuf
from tests.cluster.api import KubernetesApi
from tests.contract.bodies import core, pod, serve_widgets, widgets
from tests.contract.cases.media_types import PROTOBUF, message, sized

NS = "default"


def test_only_protobuf_is_not_acceptable(api: KubernetesApi) -> None:
    """A client that accepts protobuf only learns which setting makes it accept JSON."""
    answer = api.request("GET", core(NS, "pods"), accept=PROTOBUF)
    assert (answer.status, answer.reason) == (406, "NotAcceptable")
    assert "AcceptContentTypes" in answer.message
    assert api.request("GET", "/api/v1", accept=PROTOBUF).status == 406


def test_protobuf_first_and_json_second_is_json(api: KubernetesApi) -> None:
    """The header of client-go and of kubectl's typed clients."""
    answer = api.request("GET", core(NS, "pods"), accept=f"{PROTOBUF},application/json")
    assert answer.body["kind"] == "PodList"


def test_protobuf_of_custom_resources_is_refused(api: KubernetesApi) -> None:
    """Their messages are unknown; the client learns which setting makes it send JSON."""
    serve_widgets(api, NS)
    answer = api.request("POST", widgets(NS), message("contract.muster.dev/v1", "Widget", b""), PROTOBUF)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
    assert "ContentType" in answer.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s\x00",
        b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"k8s\x00\x0a\x7f",
        b"{}",
        message("v1", "ConfigMap", b"\x0a\x02\x0a\xff"),
        message("v1", "ConfigMap", b"\x0b\x00"),
        message("v1", "ConfigMap", b"\x08\x05"),
        message("batch/v1", "Job", b"\x12\x03\x0a\x01a"),
        message("v1", "Event", b"\x32\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00"),
    ],
)
def test_malformed_protobuf_is_a_bad_request(api: KubernetesApi, body: bytes) -> None:
    """Whatever the bytes are, the answer is 400, not a failure of the server."""
    answer = api.request("POST", core(NS, "configmaps"), body, PROTOBUF)
    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_values_that_json_writes_in_another_form() -> None:
    """Quantities, times, numbers or names, negative numbers, bytes and maps."""
    minus_one = b"\x10" + b"\xff" * 9 + b"\x01"
    assert protobuf.decode(message("scheduling.k8s.io/v1", "PriorityClass", minus_one))["value"] == -1
    target = b"\x22" + sized(b"\x08\x01\x1a\x01a")
    service = message("v1", "Service", b"\x12" + sized(b"\x0a" + sized(b"\x18\x50" + target)))
    assert protobuf.decode(service)["spec"] == {"ports": [{"port": 80, "targetPort": "a"}]}
    secret = message("v1", "Secret", b"\x12" + sized(b"\x0a\x01k\x12\x01v"))
    assert protobuf.decode(secret)["data"] == {"k": "dg=="}
    created = message("v1", "Namespace", b"\x0a" + sized(b"\x42" + sized(b"\x08\x80\xa3\x05")))
    assert protobuf.decode(created)["metadata"]["creationTimestamp"] == "1970-01-02T00:00:00Z"
    renewed = b"\x12" + sized(b"\x22" + sized(b"\x08\x01\x10\xe8\x07"))
    lease = protobuf.decode(message("coordination.k8s.io/v1", "Lease", renewed))
    assert lease["spec"]["renewTime"] == "1970-01-01T00:00:01.000001Z"
    capacity = b"\x0a" + sized(b"\x0a\x03cpu\x12" + sized(b"\x0a\x014"))
    node = protobuf.decode(message("v1", "Node", b"\x1a" + sized(capacity)))
    assert node["status"]["capacity"] == {"cpu": "4"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "log"),
        ("POST", "exec"),
        ("GET", "exec"),
        ("POST", "attach"),
        ("POST", "portforward"),
        ("GET", "proxy"),
        ("PUT", "proxy/a/path/below"),
    ],
)
def test_no_container_runs(server: ApiServer, api: KubernetesApi, method: str, path: str) -> None:
    """Logs, exec and the like are 501 of a pod that exists, and 404 of one that does not."""
    api.must("POST", core(NS, "pods"), pod())
    answer = api.request(method, f"{core(NS, 'pods', 'pod')}/{path}")
    assert (answer.status, answer.reason) == (501, "NotImplemented")
    assert api.request(method, f"{core(NS, 'pods', 'gone')}/{path}").status == 404
    assert {verb for _, verb, resource in server.calls() if "/" in resource} <= {"get", "create"}


def test_other_subresources_do_not_exist(api: KubernetesApi) -> None:
    """Only a pod, a Service or a Node could answer these."""
    assert api.request("GET", f"{core(NS, 'configmaps', 'one')}/log").status == 404
    assert api.request("GET", f"{core(NS, 'pods', 'pod')}/none").status == 404


@pytest.mark.parametrize(
    ("token", "groups"),
    [
        ("kubernetes-admin", {"system:masters", "system:authenticated"}),
        ("jane", {"system:authenticated"}),
        (
            "system:serviceaccount:team:robot",
            {"system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"},
        ),
    ],
)
def test_whoami_is_the_token(server: ApiServer, token: str, groups: set[str]) -> None:
    """`kubectl auth whoami`: the token is the name of the user, of an administrator without one."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    user = KubernetesApi(server.url, token).must("POST", path, {})["status"]["userInfo"]
    assert (user["username"], set(user["groups"])) == (token, groups)
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = KubernetesApi(server.url).must("POST", reviews, {"spec": {"token": token}})["status"]
    assert (status["authenticated"], status["user"]) == (True, user)
    assert KubernetesApi(server.url).request("POST", reviews, {"spec": {}}).status == 400
    anonymous = KubernetesApi(server.url).must("POST", path, {})["status"]["userInfo"]
    assert anonymous["username"] == "kubernetes-admin"

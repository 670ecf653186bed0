"""What a server says about itself."""

from __future__ import annotations

from tests.contract.bodies import serve_widgets
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


def _names(api: Conversation, path: str) -> dict[str, str]:
    """Resource names and kinds; not written down, for the real server has more of them."""
    return {entry["name"]: entry["kind"] for entry in api.api.must("GET", path)["resources"]}


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


@case()
def scheduling_resources(api: Conversation, ns: str) -> None:
    """v1beta1 has Workloads and PodGroups, v1alpha3 CompositePodGroups as well."""
    found = api.must("GET", "/apis/scheduling.k8s.io/v1beta1")
    assert {entry["name"] for entry in found["resources"]} == {"workloads", "podgroups", "podgroups/status"}
    found = api.must("GET", "/apis/scheduling.k8s.io/v1alpha3")
    more = {"compositepodgroups", "compositepodgroups/status"}
    assert {entry["name"] for entry in found["resources"]} == {
        "workloads",
        "podgroups",
        "podgroups/status",
    } | more


@case(releases=BOTH)
def core_resources(api: Conversation, ns: str) -> None:
    """The core group has pods with their endpoints."""
    found = _names(api, "/api/v1")
    assert found["pods"] == "Pod"
    assert found["pods/binding"] == "Binding"
    assert found["pods/eviction"] == "Eviction"
    assert found["pods/status"] == "Pod"
    assert {"namespaces", "nodes", "events", "configmaps", "secrets", "services"} <= found.keys()


@case(releases=BOTH)
def custom_group(api: Conversation, ns: str) -> None:
    """A definition's group, version and endpoints are served."""
    serve_widgets(api.api, ns)
    found = api.must("GET", "/apis/contract.muster.dev/v1")
    assert {entry["name"] for entry in found["resources"]} == {"widgets", "widgets/status", "widgets/scale"}
    assert api.must("GET", "/apis/contract.muster.dev")["preferredVersion"]["version"] == "v1"


@case(releases=BOTH)
def groups_listed(api: Conversation, ns: str) -> None:
    """/apis lists the groups that Muster needs."""
    found = {group["name"] for group in api.api.must("GET", "/apis")["groups"]}
    assert {"batch", "scheduling.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"} <= found


@case(releases=BOTH)
def slash_at_the_end(api: Conversation, ns: str) -> None:
    """/api/ and /apis/ are answered like /api and /apis."""
    assert api.api.must("GET", "/api/")["versions"] == ["v1"]
    assert api.api.must("GET", "/apis/")["kind"] == "APIGroupList"


@case(releases=BOTH)
def unknown_group(api: Conversation, ns: str) -> None:
    """A group or version that is not served is answered with 404."""
    for path in ("/apis/none.muster.dev", "/apis/none.muster.dev/v1", "/apis/batch/v7"):
        assert api.api.request("GET", path).status == 404


@case(releases=BOTH)
def health(api: Conversation, ns: str) -> None:
    """readyz, livez and healthz say ok."""
    for path in ("/readyz", "/livez", "/healthz"):
        assert api.must("GET", path) == "ok"


@case(releases=BOTH)
def version(api: Conversation, ns: str) -> None:
    """/version returns major and minor."""
    found = api.api.must("GET", "/version")
    assert found["major"] == "1"
    assert found["minor"].rstrip("+") in {"37", "36"}


@case(releases=BOTH)
def schemas(api: Conversation, ns: str) -> None:
    """/openapi/v3 has a document for each group and version, with schemas and field validation."""
    paths = api.api.must("GET", "/openapi/v3")["paths"]
    assert {"api/v1", "apis/batch/v1", "apis/scheduling.k8s.io/v1"} <= paths.keys()
    document = api.api.must("GET", paths["apis/batch/v1"]["serverRelativeURL"].partition("?")[0])
    assert "io.k8s.api.batch.v1.Job" in document["components"]["schemas"]
    operation = document["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"]
    assert "fieldValidation" in {parameter["name"] for parameter in operation["parameters"]}

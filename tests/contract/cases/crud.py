"""Creating, reading, replacing and listing objects."""

from __future__ import annotations

from tests.contract.bodies import NO_STRINGS, config_map, core, groups, job, jobs, pod, pod_group, workload
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


@case(releases=BOTH)
def created(api: Conversation, ns: str) -> None:
    """A created object comes back with 201, a uid, a resourceVersion and a creation time."""
    answer = api.request("POST", core(ns, "configmaps"), config_map())
    metadata = answer.body["metadata"]
    assert answer.status == 201
    assert all(metadata[field] for field in ("uid", "resourceVersion", "creationTimestamp"))
    assert metadata["namespace"] == ns


@case(releases=BOTH)
def taken(api: Conversation, ns: str) -> None:
    """A name that is taken is answered with 409 AlreadyExists."""
    api.must("POST", core(ns, "configmaps"), config_map())
    answer = api.request("POST", core(ns, "configmaps"), config_map())
    assert (answer.status, answer.reason) == (409, "AlreadyExists")


@case()
def taken_with_group(api: Conversation, ns: str) -> None:
    """AlreadyExists names the resource with its API group."""
    api.must("POST", groups(ns, "workloads"), workload())
    answer = api.request("POST", groups(ns, "workloads"), workload())
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.body["details"] == {"group": "scheduling.k8s.io", "kind": "workloads", "name": "work"}


@case(releases=BOTH)
def missing(api: Conversation, ns: str) -> None:
    """A missing object is answered with 404 NotFound and its name in the details."""
    answer = api.request("GET", core(ns, "configmaps", "gone"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.body["details"] == {"name": "gone", "kind": "configmaps"}


@case(releases=BOTH)
def unknown_resource(api: Conversation, ns: str) -> None:
    """A resource that is not served is answered with 404 and no name in the details."""
    answer = api.request("GET", core(ns, "gadgets"))
    assert answer.status == 404


@case(releases=BOTH)
def types_of_type_meta(api: Conversation, ns: str) -> None:
    """A kind or apiVersion that is no string is answered with 400."""
    for field in ("apiVersion", "kind"):
        for value in NO_STRINGS:
            answer = api.request("POST", core(ns, "configmaps"), {**config_map(), field: value})
            assert answer.status == 400, (field, value)


@case(releases=BOTH)
def lone_surrogates(api: Conversation, ns: str) -> None:
    """Half a character in JSON is stored as U+FFFD, also in a name, which is refused for it."""
    made = api.must("POST", core(ns, "configmaps"), config_map(data={"key": "a\ud800\U0001f600"}))
    assert made["data"] == {"key": "a\ufffd\U0001f600"}
    long = config_map("two", annotations={"a": "\ud800"})
    assert api.must("POST", core(ns, "configmaps"), long)["metadata"]["annotations"] == {"a": "\ufffd"}
    assert api.request("POST", core(ns, "configmaps"), config_map("\ud800")).status == 422


@case(releases=BOTH)
def missing_namespace(api: Conversation, ns: str) -> None:
    """Nothing can be created in a namespace that does not exist."""
    answer = api.request("POST", core(ns + "-no", "configmaps"), config_map())
    assert (answer.status, answer.reason) == (404, "NotFound")


@case(releases=BOTH)
def other_namespace(api: Conversation, ns: str) -> None:
    """A body that names another namespace than the URL is refused with 400."""
    answer = api.request("POST", core(ns, "configmaps"), config_map(namespace="elsewhere"))
    assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def generated_name(api: Conversation, ns: str) -> None:
    """GenerateName gets five random characters."""
    body = config_map()
    body["metadata"] = {"generateName": "made-"}
    found = api.must("POST", core(ns, "configmaps"), body)["metadata"]["name"]
    assert found.startswith("made-")
    assert len(found) == 10


@case(releases=BOTH)
def nameless(api: Conversation, ns: str) -> None:
    """An object without name and generateName is refused with 422."""
    body = config_map()
    del body["metadata"]["name"]
    answer = api.request("POST", core(ns, "configmaps"), body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueRequired", "metadata.name")]


@case(releases=BOTH)
def bad_name(api: Conversation, ns: str) -> None:
    """A name that is no DNS subdomain is refused with 422."""
    answer = api.request("POST", core(ns, "configmaps"), config_map("Not_A_Name"))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.name")]


@case(releases=BOTH)
def bad_label(api: Conversation, ns: str) -> None:
    """A label value with a blank is refused with 422."""
    answer = api.request("POST", core(ns, "configmaps"), config_map(labels={"a": "b c"}))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.labels")]


@case(releases=BOTH)
def version_at_creation(api: Conversation, ns: str) -> None:
    """A resourceVersion in a new object is refused."""
    answer = api.request("POST", core(ns, "configmaps"), config_map(resourceVersion="1"))
    assert not answer.ok
    assert (answer.status, answer.reason) == (500, "")


@case(releases=BOTH)
def uid_at_creation(api: Conversation, ns: str) -> None:
    """A uid in a new object is replaced by the server's own."""
    given = "11111111-1111-1111-1111-111111111111"
    assert api.must("POST", core(ns, "configmaps"), config_map(uid=given))["metadata"]["uid"] != given


@case(releases=BOTH)
def dry_run(api: Conversation, ns: str) -> None:
    """dryRun=All answers as a creation does and stores nothing."""
    answer = api.request("POST", core(ns, "configmaps"), config_map(), query={"dryRun": "All"})
    assert answer.status == 201
    assert api.request("GET", core(ns, "configmaps", "one")).status == 404


@case(releases=BOTH)
def dry_run_refused(api: Conversation, ns: str) -> None:
    """DryRun takes no other word than All."""
    answer = api.request("POST", core(ns, "configmaps"), config_map(), query={"dryRun": "Some"})
    assert answer.status == 422


@case(releases=BOTH)
def dry_run_delete(api: Conversation, ns: str) -> None:
    """A dry deletion leaves the object."""
    api.must("POST", core(ns, "configmaps"), config_map())
    assert api.request("DELETE", core(ns, "configmaps", "one"), query={"dryRun": "All"}).status == 200
    assert api.request("GET", core(ns, "configmaps", "one")).status == 200


@case(releases=BOTH)
def replaced(api: Conversation, ns: str) -> None:
    """A PUT with the current resourceVersion replaces the object and changes its version."""
    made = api.must("POST", core(ns, "configmaps"), config_map())
    changed = api.must("PUT", core(ns, "configmaps", "one"), made | {"data": {"other": "1"}})
    assert changed["data"] == {"other": "1"}
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


@case(releases=BOTH)
def stale(api: Conversation, ns: str) -> None:
    """A PUT with an old resourceVersion is answered with 409 Conflict."""
    made = api.must("POST", core(ns, "configmaps"), config_map())
    api.must("PUT", core(ns, "configmaps", "one"), made | {"data": {"a": "1"}})
    answer = api.request("PUT", core(ns, "configmaps", "one"), made | {"data": {"a": "2"}})
    assert (answer.status, answer.reason) == (409, "Conflict")


@case(releases=BOTH)
def without_version(api: Conversation, ns: str) -> None:
    """A ConfigMap may be replaced without a resourceVersion."""
    api.must("POST", core(ns, "configmaps"), config_map())
    assert api.must("PUT", core(ns, "configmaps", "one"), config_map(data={"b": "1"}))["data"] == {"b": "1"}


@case()
def group_without_version(api: Conversation, ns: str) -> None:
    """A PodGroup may not be replaced without a resourceVersion (422)."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    answer = api.request("PUT", groups(ns, "podgroups", "group"), pod_group())
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.resourceVersion")]


@case(releases=BOTH)
def put_missing(api: Conversation, ns: str) -> None:
    """A PUT does not create."""
    assert api.request("PUT", core(ns, "configmaps", "one"), config_map()).status == 404


@case(releases=BOTH)
def put_other_name(api: Conversation, ns: str) -> None:
    """A PUT whose body has another name than the URL is refused with 400."""
    api.must("POST", core(ns, "configmaps"), config_map())
    answer = api.request("PUT", core(ns, "configmaps", "one"), config_map("two"))
    assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def put_other_uid(api: Conversation, ns: str) -> None:
    """A PUT with another object's uid is answered with 409 Conflict."""
    api.must("POST", core(ns, "configmaps"), config_map())
    answer = api.request(
        "PUT", core(ns, "configmaps", "one"), config_map(uid="11111111-1111-1111-1111-111111111111")
    )
    assert (answer.status, answer.reason) == (409, "Conflict")


@case(releases=BOTH)
def nothing_changed(api: Conversation, ns: str) -> None:
    """A write that changes nothing keeps the resourceVersion."""
    made = api.must("POST", core(ns, "configmaps"), config_map())
    same = api.must("PUT", core(ns, "configmaps", "one"), made)
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@case(releases=BOTH)
def wrong_type(api: Conversation, ns: str) -> None:
    """A wrong type in a built-in kind is answered with 400."""
    answer = api.request("POST", core(ns, "pods"), pod(nodeName=5))
    assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def wrong_type_deep(api: Conversation, ns: str) -> None:
    """A wrong type deep inside is answered with 400 and its field."""
    answer = api.request("POST", jobs(ns), job(parallelism="two"))
    assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def number_too_large(api: Conversation, ns: str) -> None:
    """A number beyond an int32, or beyond an int64, is answered with 400."""
    for number in (2**31, -(2**31) - 1, 2**63):
        answer = api.request("POST", jobs(ns), job(parallelism=number))
        assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def wrong_list(api: Conversation, ns: str) -> None:
    """An object in place of a list is answered with 400."""
    body = pod()
    body["spec"]["containers"] = {"name": "a"}
    answer = api.request("POST", core(ns, "pods"), body)
    assert answer.status == 400


@case(releases=BOTH)
def wrong_kind(api: Conversation, ns: str) -> None:
    """A body of another kind is refused with 400."""
    answer = api.request("POST", core(ns, "pods"), config_map())
    assert answer.status == 400


@case(releases=BOTH)
def wrong_api_version(api: Conversation, ns: str) -> None:
    """A body of another group is refused with 400."""
    body = pod()
    body["apiVersion"] = "batch/v1"
    answer = api.request("POST", core(ns, "pods"), body)
    assert answer.status == 400


@case(releases=BOTH)
def broken_json(api: Conversation, ns: str) -> None:
    """A body that is a JSON list is refused with 400."""
    answer = api.request("POST", core(ns, "pods"), [1])
    assert answer.status == 400


@case(releases=BOTH)
def unknown_field_dropped(api: Conversation, ns: str) -> None:
    """An unknown field is dropped without an error."""
    body = pod(unheardOf=1)
    assert "unheardOf" not in api.must("POST", core(ns, "pods"), body)["spec"]


@case(releases=BOTH)
def unknown_field_strict(api: Conversation, ns: str) -> None:
    """fieldValidation=Strict refuses an unknown field with 400."""
    answer = api.request("POST", core(ns, "pods"), pod(unheardOf=1), query={"fieldValidation": "Strict"})
    assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def method_refused(api: Conversation, ns: str) -> None:
    """A PUT on a collection is answered with 405."""
    assert api.request("PUT", core(ns, "configmaps"), config_map()).status == 405

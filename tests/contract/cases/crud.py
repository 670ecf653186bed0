"""Creating, reading, replacing and listing objects."""

from __future__ import annotations

from tests.contract.bodies import config_map, core, groups, pod_group
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
    assert api.request("POST", core(ns, "configmaps"), config_map()).reason == "AlreadyExists"


@case(releases=BOTH)
def missing(api: Conversation, ns: str) -> None:
    """A missing object is answered with 404 NotFound and its name in the details."""
    answer = api.request("GET", core(ns, "configmaps", "gone"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.body["details"] == {"name": "gone", "kind": "configmaps"}


@case(releases=BOTH)
def dry_run(api: Conversation, ns: str) -> None:
    """dryRun=All answers as a creation does and stores nothing."""
    assert api.request("POST", core(ns, "configmaps"), config_map(), query={"dryRun": "All"}).status == 201
    assert api.request("GET", core(ns, "configmaps", "one")).status == 404


@case(releases=BOTH)
def stale(api: Conversation, ns: str) -> None:
    """A PUT with an old resourceVersion is answered with 409 Conflict."""
    made = api.must("POST", core(ns, "configmaps"), config_map())
    api.must("PUT", core(ns, "configmaps", "one"), made | {"data": {"a": "1"}})
    assert api.request("PUT", core(ns, "configmaps", "one"), made | {"data": {"a": "2"}}).reason == "Conflict"


@case()
def group_without_version(api: Conversation, ns: str) -> None:
    """A PodGroup may not be replaced without a resourceVersion (422)."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    assert api.request("PUT", groups(ns, "podgroups", "group"), pod_group()).status == 422

"""Jobs whose pods are in a gang: 1.36 keeps their size, 1.37 does not."""

from __future__ import annotations

import time

from tests.cluster.api import MERGE_PATCH, ApiResponse
from tests.contract.bodies import Object, gang, groups, job, jobs, owner, pod_group
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
VERSIONS = {"1.37": "v1beta1", "1.36": "v1alpha2"}
INDEXED: Object = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


def _make_group(api: Conversation, ns: str, policy: Object, *owners: Object, release: str = "1.36") -> None:
    version = VERSIONS[release]
    body = pod_group(version=version, schedulingPolicy=policy)
    body["metadata"]["ownerReferences"] = list(owners)
    api.must("POST", groups(ns, "podgroups", version=version), body)


def _scale(api: Conversation, ns: str, pods: int) -> ApiResponse:
    change = {"spec": {"parallelism": pods, "completions": pods}}
    return api.request("PATCH", jobs(ns, "job"), change, MERGE_PATCH)


def _seen(api: Conversation, ns: str) -> None:
    """Wait until the real server's plugin knows the newest PodGroup, which it has from a watch.

    A probe that is refused shows it: a dry run, and not written down.
    """
    body = pod_group("probe", version="v1alpha2")
    api.api.must("POST", groups(ns, "podgroups", version="v1alpha2"), body)
    probe = job("probe", template={"schedulingGroup": {"podGroupName": "probe"}})
    api.api.must("POST", jobs(ns), probe)
    for _ in range(100):
        change = {"spec": {"parallelism": 2}}
        if api.api.request("PATCH", jobs(ns, "probe"), change, MERGE_PATCH, {"dryRun": "All"}).status == 403:
            return
        time.sleep(0.05)
    raise AssertionError("the server does not see its PodGroups")


@case(releases=("1.36",))
def controlled(api: Conversation, ns: str) -> None:
    """In 1.36 a Job that controls a gang keeps its parallelism, up and down; the rest of it may change."""
    made = api.must("POST", jobs(ns), job(**INDEXED))
    _make_group(api, ns, gang(), owner(made, controller=True))
    _seen(api, ns)
    for pods in (4, 2):
        answer = _scale(api, ns, pods)
        assert (answer.status, answer.reason) == (403, "Forbidden")
    assert _scale(api, ns, 3).status == 200
    assert api.request("PATCH", jobs(ns, "job"), {"spec": {"suspend": True}}, MERGE_PATCH).status == 200


@case(releases=("1.36",))
def named(api: Conversation, ns: str) -> None:
    """In 1.36 a Job whose template names a gang keeps its parallelism, whoever owns the gang."""
    api.must("POST", jobs(ns), job(template={"schedulingGroup": {"podGroupName": "group"}}, **INDEXED))
    assert _scale(api, ns, 4).status == 200
    _make_group(api, ns, gang())
    _seen(api, ns)
    answer = _scale(api, ns, 5)
    assert (answer.status, answer.reason) == (403, "Forbidden")


@case()
def newer(api: Conversation, ns: str) -> None:
    """In 1.37 a Job of a gang may be scaled: its template's, or one that it controls."""
    made = api.must("POST", jobs(ns), job(**INDEXED))
    _make_group(api, ns, gang(), owner(made, controller=True), release="1.37")
    assert _scale(api, ns, 4).status == 200
    template = {"schedulingGroup": {"podGroupName": "group"}}
    api.must("POST", jobs(ns), job("named", template=template, **INDEXED))
    change = {"spec": {"parallelism": 4, "completions": 4}}
    assert api.request("PATCH", jobs(ns, "named"), change, MERGE_PATCH).status == 200

"""pytest's report of a failed story contains its timeline: changes, Events and Muster's writes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.simulator.apiserver import ApiServer
from tests.e2e import conftest

pytest_plugins = ["pytester"]

LIFTED = {
    "verb": "patch",
    "user": {"username": "system:serviceaccount:muster-system:patch-pods"},
    "objectRef": {"resource": "pods", "namespace": "story-1", "name": "sweep-0"},
    "responseStatus": {"code": 200},
    "annotations": {"authorization.k8s.io/decision": "allow"},
    "requestObject": {"spec": {"schedulingGates": [{"$patch": "delete", "name": "muster.dev/pod-group"}]}},
}
STAGE = """
import pytest
from pathlib import Path
from types import SimpleNamespace
from tests.cluster.api import KubernetesApi

@pytest.fixture
def stage():
    cluster = SimpleNamespace(api=KubernetesApi({url!r}), audit_log=Path({log!r}), knative=None)
    muster = SimpleNamespace(dead_letters=[], idle=lambda: True, settle=lambda: None)
    return SimpleNamespace(cluster=cluster, muster=muster)

POD = {{
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {{"name": "sweep-0"}},
    "spec": {{"containers": [{{"name": "main", "image": "example.com/train"}}], "nodeName": {node!r},
              "schedulingGroup": {{"podGroupName": "sweep-main-12345678"}}}},
}}
EVENT = {{
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {{"name": "sweep-0.1"}},
    "reportingComponent": "default-scheduler",
    "reason": "FailedScheduling",
    "message": "minCount (2) cannot be satisfied",
    "involvedObject": {{"kind": "Pod", "name": "sweep-0", "namespace": "story-1"}},
}}

def test_story(begin_story):
    story = begin_story(opted_in=False)
    story.create(POD)
    story.create(EVENT)
    story.wait("all is seen", lambda now: now.pods() and now.recording.now("Event"))
    Path({log!r}).write_text({lifted!r})
    {ending}
"""


@pytest.fixture(autouse=True)
def _first_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each story here takes place in the namespace story-1."""
    monkeypatch.setattr(conftest, "_NUMBERS", itertools.count(1))


@pytest.fixture
def api_server() -> Iterator[ApiServer]:
    """The API server of the story."""
    with ApiServer() as server:
        yield server


def _report(
    pytester: pytest.Pytester, api_server: ApiServer, folder: Path, *, node: str = "", ending: str = ""
) -> pytest.RunResult:
    log = folder / "audit.jsonl"
    log.touch()
    lifted = f"{json.dumps(LIFTED)}\n"
    pytester.makepyfile(
        STAGE.format(url=api_server.url, log=str(log), lifted=lifted, node=node, ending=ending)
    )
    return pytester.runpytest_inprocess(
        "-p", "tests.e2e.conftest", "-p", "no:xdist", "-p", "no:cacheprovider"
    )


TIMELINE = [
    "*ADDED*Pod sweep-0 Pending*sweep-main-12345678*",
    "*ADDED*Event default-scheduler: FailedScheduling sweep-0: minCount (2) cannot be satisfied*",
    "*Muster wrote:*",
    "*200 patch-pods: patch pods sweep-0*",
]


@pytest.mark.thorough
def test_the_report_of_a_failed_story_has_its_timeline(
    pytester: pytest.Pytester, api_server: ApiServer, tmp_path: Path
) -> None:
    """The timeline is a section of the report, whatever assertion failed."""
    report = _report(pytester, api_server, tmp_path, ending="assert story.running() == 1")
    report.assert_outcomes(failed=1)
    report.stdout.fnmatch_lines(["*assert 0 == 1*", "*what happened in story-*", *TIMELINE])


def test_the_report_of_a_broken_law_has_the_timeline(
    pytester: pytest.Pytester, api_server: ApiServer, tmp_path: Path
) -> None:
    """The test itself passes; its teardown fails with the breach and the timeline."""
    report = _report(pytester, api_server, tmp_path, node="node-0")
    report.assert_outcomes(passed=1, errors=1)
    bound = "*workload_group_binding_in_this_order: sweep-0 *PodGroup*"
    report.stdout.fnmatch_lines([bound, *TIMELINE])

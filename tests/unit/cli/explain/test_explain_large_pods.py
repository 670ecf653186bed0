"""`muster explain` of an owner whose pods a tenant made very large."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from click.testing import Result

from muster.cli.cluster import Connection, cluster_errors
from muster.cluster.interface import Objects
from muster.cluster.kubeconfig import Kubeconfig
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.paging import Page, all_pages
from muster.objects.resources import PODS, Resource
from tests.support import builders as b
from tests.unit.cli.conftest import Muster, assert_names

GROUP = "llama-main-33333333"
MANY = 5_000


class _PagesOfPods(Snapshot):
    """A Job and many copies of one pod of it; each page has one, which is parsed anew."""

    url = "http://127.0.0.1:6443"

    def __init__(self, pod: Any, count: int) -> None:
        super().__init__([b.a_namespace(), b.a_job(), b.a_pod_group(GROUP)])
        self._text, self._count = json.dumps(pod), count

    def page(self, resource: Resource, namespace: str = "", *, token: str = "", **selectors: str) -> Page:
        """The copy that the token names."""
        if resource != PODS:
            return Page(super().list(resource, namespace, **selectors))
        number = int(token or 0)
        body = json.loads(self._text)
        body["metadata"]["name"] += f"-{number}"
        return Page([body], str(number + 1) if number + 1 < self._count else "")

    def list(self, resource: Resource, namespace: str = "", **selectors: str) -> Objects:
        """All pages, joined as by a client."""
        return all_pages(lambda token: self.page(resource, namespace, token=token, **selectors)).objects


def a_large_pod(**spec: Any) -> Any:
    """A pod of the Job, in its group, with these fields."""
    return b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.with_spec(**spec))


def explained(muster: Muster, monkeypatch: pytest.MonkeyPatch, pod: Any, count: int) -> Result:
    """Explain the Job beside so many copies of a pod."""
    cluster: Any = _PagesOfPods(pod, count)

    @contextmanager
    def connected(*_arguments: Any) -> Iterator[Connection]:
        with cluster_errors(cluster.url):
            yield Connection(cluster, Kubeconfig((), "here", "team-a", cluster.url, {}, {}))

    monkeypatch.setattr("muster.cli.explain.connected", connected)
    return muster("explain", "job/llama")


@pytest.mark.thorough
def test_containers_are_kept_of_one_page(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables take 200 times the memory of their JSON; 60 pods of 1.3 MB took 1.2 GiB."""
    variables = [{"name": f"A{number}"} for number in range(MANY)]
    pod = a_large_pod(containers=[{"name": "a", "image": "a", "env": variables}])
    explained(muster, monkeypatch, pod, 1)  # imports
    peaks = []
    for count in (2, 12):
        tracemalloc.start()
        result = explained(muster, monkeypatch, pod, count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert_names(result.stdout, "Job team-a/llama", f"PodGroup {GROUP}")
    few, many = peaks
    assert many - few < 500_000


def test_each_list_is_read_once_for_all_steps(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 pods of a megabyte were read eight times, one or two a page: 98 s without a line."""
    steps: list[str] = []
    monkeypatch.setattr(
        "muster.cli.explain.step_shown",
        lambda text: nullcontext(lambda step: steps.append(f"{text} {step}".rstrip())),
    )
    result = explained(muster, monkeypatch, a_large_pod(), 3)
    assert_names(result.stdout, "patch_pods", "emit_conditions")
    assert [step for step in steps if "pods" in step] == [
        "reading pods",
        "reading pods: 1",
        "reading pods: 2",
        "reading pods: 3",
    ]
    assert steps[-1] == "reading"  # cleared before the explanation is printed

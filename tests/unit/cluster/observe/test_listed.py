"""The cluster of a sweep: it answers reads from lists that were fetched page by page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object
from muster.cluster.observe.list_cache import ListCache, Listing
from muster.cluster.observe.snapshot import ReadOnlyError
from muster.cluster.paging import Page, all_pages
from muster.cluster.read import each
from muster.objects.pods import Pod
from muster.objects.resources import EVENTS, JOBS, PODS, WORKLOADS, Resource, by_kind
from muster.objects.scheduling import Workload
from muster.policy.model import Action, Verb
from muster.policy.owners.job import Job
from muster.runtime.steps import step_named
from tests.support.builders import (
    a_child_job,
    a_job,
    a_jobset_of_trainjob,
    a_namespace,
    a_users_workload,
    a_workload,
    labelled,
    named,
    pods_of,
    ref,
)
from tests.unit.cluster.counting import CountingSnapshot


class Paged(CountingSnapshot):
    """Gives its objects two at a time; a token is good once, and never where `forgets` has it."""

    still = " still"
    """The end of a token in place of an expired one."""

    def __init__(self, *objects: Object, forgets: Iterable[str] = (), missing: tuple[str, ...] = ()) -> None:
        super().__init__(*objects, missing=missing)
        self.tokens: list[str] = []
        self._forgets = list(forgets)

    def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        as_of: str = "",
        token: str = "",
    ) -> Page:
        """Two of them."""
        self.tokens.append(token)
        if token in self._forgets:
            self._forgets.remove(token)
            error = errors.Expired("too old", status=410)
            error.token = f"{token}{self.still}" if token and self.still else ""
            raise error
        begin = int(token.split(maxsplit=1)[0]) if token else 0
        objects = self.list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        more = str(begin + 2) if len(objects) > begin + 2 else ""
        return Page(objects[begin : begin + 2], more)


class Away(CountingSnapshot):
    """Does not answer."""

    def page(self, *_: Any, **__: Any) -> Page:
        """No page."""
        raise errors.Unavailable("connection refused")


def jobs(count: int) -> list[Object]:
    """So many Jobs."""
    return [a_job(named(f"job-{number}")) for number in range(count)]


def listed(cluster: Any, *listings: Listing) -> ListCache:
    """The lists of a cluster, complete."""
    lists = ListCache(cluster, listings)
    while not lists.complete:
        lists.read_page()
    return lists


def names(objects: Iterable[Object]) -> list[str]:
    """Their names."""
    return [obj["metadata"]["name"] for obj in objects]


class TestPages:
    """Lists are read page by page."""

    def test_all_pages_are_read(self) -> None:
        """One call for each page, and none for what is asked afterwards."""
        cluster = Paged(*jobs(5))
        lists = listed(cluster, Listing(JOBS, Job))
        assert cluster.tokens == ["", "2", "4"]
        assert names(lists.list(JOBS)) == [f"job-{number}" for number in range(5)]
        assert lists.get(JOBS, "job-4", "team-a") is not None
        assert lists.get(JOBS, "none", "team-a") is None
        assert (len(cluster.tokens), lists.pages) == (3, 3)

    def test_an_expired_token_goes_on_where_it_was(self) -> None:
        """410 brings a token for the rest of the list, of a later moment: nothing is read twice."""
        cluster = Paged(*jobs(5), forgets=["2"])
        assert len(names(listed(cluster, Listing(JOBS, Job)).list(JOBS))) == 5
        assert cluster.tokens == ["", "2", "2 still", "4"]

    def test_without_another_token_the_list_ends(self) -> None:
        """The next sweep begins anew, and what was read is not counted twice."""
        cluster = Paged(*jobs(5), forgets=["2"])
        cluster.still = ""
        with pytest.raises(errors.Expired):
            listed(cluster, Listing(JOBS, Job))
        assert cluster.tokens == ["", "2"]

    def test_a_page_that_fails_can_be_read_again(self) -> None:
        """What was read before it is kept."""
        cluster = Paged(*jobs(3))
        lists = ListCache(cluster, [Listing(JOBS, Job)])
        lists.read_page()
        lists.cluster = Away()
        with pytest.raises(errors.Unavailable):
            lists.read_page()
        lists.cluster = cluster
        lists.read_page()
        assert lists.complete
        assert len(lists.list(JOBS)) == 3

    def test_a_kind_that_is_not_served(self) -> None:
        """Asking for it says so, as the cluster itself would; the other lists are there."""
        lists = listed(
            Paged(*jobs(1), missing=("Workload",)), Listing(WORKLOADS, Workload), Listing(JOBS, Job)
        )
        with pytest.raises(errors.ApiGone):
            lists.list(WORKLOADS)
        with pytest.raises(errors.ApiGone):
            lists.get(WORKLOADS, "llama", "team-a")
        assert names(lists.list(JOBS)) == ["job-0"]

    def test_a_consistent_list_is_begun_anew(self) -> None:
        """A caller that watches from its version needs all of one moment; twice too slow is an error."""
        cluster = Paged(*jobs(3), forgets=["2"])
        assert len(all_pages(lambda token: cluster.page(JOBS, token=token)).objects) == 3
        assert cluster.tokens == ["", "2", "", "2"]
        cluster = Paged(*jobs(3), forgets=["2", "2"])
        with pytest.raises(errors.Expired):
            all_pages(lambda token: cluster.page(JOBS, token=token))


class TestSelectors:
    """What a step asks for is found without looking at everything."""

    def test_pods_and_jobs_of_an_owner(self) -> None:
        """By the labels that name it; another namespace's are not among them."""
        jobset, job = a_jobset_of_trainjob(), a_job(named("alone"), pods=2)
        elsewhere = [{**pod, "metadata": pod["metadata"] | {"namespace": "team-b"}} for pod in pods_of(job)]
        cluster = Paged(a_child_job(jobset, "node", 0), job, *pods_of(job), *elsewhere)
        lists = listed(cluster, Listing(JOBS, Job), Listing(PODS, Pod))
        selector = f"jobset.sigs.k8s.io/jobset-name={jobset['metadata']['name']}"
        assert names(lists.list(JOBS, "team-a", labels=selector)) == names([a_child_job(jobset, "node", 0)])
        selector = "batch.kubernetes.io/job-name=alone"
        assert names(lists.list(PODS, "team-a", labels=selector)) == ["alone-0", "alone-1"]
        assert len(lists.list(PODS, labels=selector)) == 4
        assert lists.list(PODS, "team-a", labels="batch.kubernetes.io/job-name=none") == []

    def test_other_selectors(self) -> None:
        """The Workloads that Muster did not make."""
        lists = listed(Paged(a_workload(), a_users_workload()), Listing(WORKLOADS, Workload))
        others = lists.list(WORKLOADS, "team-a", labels="app.kubernetes.io/managed-by!=muster")
        assert names(others) == ["mine"]
        assert lists.list(WORKLOADS, "team-b", labels="app.kubernetes.io/managed-by!=muster") == []

    @pytest.mark.parametrize("selector", ["app.kubernetes.io/managed-by=muster", "muster.dev/group"])
    def test_no_object_is_parsed_to_find_those_of_a_kind(
        self, selector: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Groups with megabytes of conditions would be parsed in a row, while no event is handled."""
        labels = {"app.kubernetes.io/managed-by": "muster", "muster.dev/group": "trainer"}
        with_them = [a_job(named(f"with-{number}"), labelled(labels)) for number in range(40)]
        without = [a_job(named(f"without-{number}")) for number in range(40)]
        lists, parsed = listed(Paged(*with_them, *without), Listing(JOBS, None)), list[bytes]()
        loads = json.loads

        def counted(text: bytes) -> Any:
            parsed.append(text)
            return loads(text)

        monkeypatch.setattr(json, "loads", counted)
        page = lists.page(JOBS, labels=selector)
        assert (len(parsed), page.token) == (16, "16")
        assert names(each(lists, JOBS, labels=selector)) == [f"with-{number}" for number in range(40)]

    def test_events_of_an_object(self) -> None:
        """By its UID."""
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "team-a"},
            "involvedObject": {"uid": "u"},
            "reason": "FailedCreate",
        }
        lists = listed(Paged(event), Listing(EVENTS, None, fields="reason=FailedCreate"))
        assert names(lists.list(EVENTS, "team-a", fields="involvedObject.uid=u,reason=FailedCreate")) == ["e"]
        assert lists.list(EVENTS, "team-a", fields="involvedObject.uid=v,reason=FailedCreate") == []


class TestWhatIsKept:
    """The fields that a view names, and no more."""

    def test_a_view_reads_the_same(self) -> None:
        """A step gets the answers that the cluster would have given."""
        job = a_job(labelled({"a": "b"}), pods=3)
        job["metadata"]["managedFields"] = [{"manager": "kubectl"}]
        kept = listed(Paged(job), Listing(JOBS, Job)).get(JOBS, "llama", "team-a")
        assert kept is not None
        assert Job.read(kept) == Job.read(job)
        assert "managedFields" not in kept["metadata"]

    def test_an_object_that_cannot_be_read_is_kept_whole(self) -> None:
        """A reader finds what is wrong with it."""
        job = a_job()
        job["spec"]["parallelism"] = "many"
        assert listed(Paged(job), Listing(JOBS, Job)).get(JOBS, "llama", "team-a") == job


class TestLiveReads:
    """What was not listed is read live."""

    def test_once(self) -> None:
        """The namespace of ten owners is read for the first of them."""
        cluster = Paged(a_namespace())
        lists = listed(cluster)
        for _ in range(2):
            lists.get(JOBS, "llama", "team-a")
            lists.list(PODS, "team-a", labels="x=y")
        assert cluster.reads == ["get Job llama", "list Pod"]

    def test_nothing_is_written(self) -> None:
        """Lists are of the past: a step reads again before it writes."""
        with pytest.raises(ReadOnlyError):
            listed(Paged()).write(Action(Verb.DELETE, ref(a_job())), "x")


def test_an_object_with_an_invalid_field_ends_no_list() -> None:
    """The sweep of mark-runtime would end at one runtime of any namespace, and never see the others."""
    runtimes = [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {"name": name, "namespace": "team-a", "uid": name},
            "spec": {"template": {"spec": {"replicatedJobs": [{"name": "a", "replicas": replicas}]}}},
        }
        for name, replicas in (("bad", 1.5), ("good", 1))
    ]
    listed = ListCache(CountingSnapshot(*runtimes), step_named("mark_runtime").lists)
    while not listed.complete:
        listed.read_page()
    assert [
        body["metadata"]["name"]
        for body in listed.list(by_kind("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"))
    ] == ["bad", "good"]


def test_pages_of_listed_objects_are_announced() -> None:
    """A sweep pauses there: its objects are found by parsing thousands of listed ones in a row."""
    lists, pages = listed(Paged(*jobs(40)), Listing(JOBS, Job)), list[int]()
    lists.before_page = lambda: pages.append(1)
    assert len(list(each(lists, JOBS))) == 40
    assert len(pages) == 3

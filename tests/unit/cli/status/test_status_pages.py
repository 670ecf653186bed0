"""`muster status` and `muster check` of a large cluster: lists are read page by page."""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.cli import status as status_command
from muster.cli import tables
from muster.cluster.errors import AnswerTooLarge, Expired
from muster.cluster.http.client import Client
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.paging import Page
from muster.cluster.read import collect
from muster.objects.resources import (
    JOBS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    POD_GROUPS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    Resource,
)
from muster.operator import status, status_pods
from muster.operator.check import Level, check_installation, check_policies, check_uninstall, policies
from muster.operator.status import ClusterStatus, Item, State, read_status
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support import builders as b
from tests.unit.cli.conftest import Muster

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
POLICY = "muster.dev/pod-group-policy"
_FEW = (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
)
SOURCE = {
    "apiVersion": "sources.knative.dev/v1",
    "metadata": {"name": "jobs", "namespace": "muster-system"},
}
FALLBACK = {"muster.dev/stand-in": "InvalidPolicy: no group"}
UNPLACED = {"conditions": [{"type": "PodGroupsScheduled", "status": "False", "reason": "Unschedulable"}]}
POLICIES = {"one": "workload: {}", "two": "x", "three": "workload: {}"}


def _waiting(name: str) -> Any:
    """A Job that has no groups yet."""
    job = b.a_job(b.named(name))
    job.setdefault("status", {})["conditions"] = [
        {"type": "muster.dev/PodGroupsReady", "status": "False", "reason": "WaitingForPodGroup"}
    ]
    return job


class _Paged(Snapshot):
    """A cluster that serves one object a page; a continue token expires as often as `expiries` says."""

    expiries = 0

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
        """The object at the position that the token names."""
        if token and self.expiries:
            self.expiries -= 1
            raise Expired("too old", status=410)
        found = super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        begin = int(token or 0)
        return Page(found[begin : begin + 1], str(begin + 1) if begin + 1 < len(found) else "")

    def list(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        """Fail: a list of a large cluster does not fit into memory. Admission policies are few."""
        if resource in _FEW:
            return super().list(resource, *arguments, **options)
        raise AssertionError(f"{resource.plural} were listed as a whole")


@pytest.mark.parametrize("expiries", [0, 1])
def test_lists_are_read_page_by_page(expiries: int) -> None:
    """Of the namespace on each page; one that expires is read again, and nothing is listed twice."""
    jobs = [_waiting(name) for name in ("one", "two", "three")]
    other = _waiting("other")
    other["metadata"]["namespace"] = "team-b"
    members = [b.a_pod(b.a_job(), index, b.stamped(GROUP), b.gated(GATE)) for index in range(2)]
    cluster = _Paged([*jobs, other, *members])
    cluster.expiries = expiries
    found = read_status(cluster, "team-a").items
    assert {item.what for item in found} == {"job/one", "job/two", "job/three", f"podgroup/{GROUP}"}
    assert len(found) == 4
    (group,) = (item for item in found if item.what == f"podgroup/{GROUP}")
    assert group.message == "2 pods of a PodGroup that does not exist"
    assert cluster.expiries == 0


def test_each_object_is_shown() -> None:
    """A thousand pods of a megabyte each took 82 s without a sign."""
    shown: list[str] = []
    read_status(_Paged([_waiting(name) for name in ("one", "two", "three")]), reading=shown.append)
    assert {"jobs", "jobs: 1", "jobs: 2", "jobs: 3"} <= set(shown)


@pytest.mark.parametrize("expiries", [0, 1])
def test_check_reads_large_kinds_page_by_page(expiries: int) -> None:
    """Jobs for their policies and pods for their gates: a tenant may make many of a megabyte each."""
    jobs = [b.a_job(b.named(name), b.annotated({POLICY: text})) for name, text in POLICIES.items()]
    cluster = _Paged(jobs)
    cluster.expiries = expiries
    broken, last = check_policies(cluster, "muster-system")
    assert (broken.level, "Job team-a/two" in broken.about) == (Level.WARN, True)
    assert last.message.startswith("2 ")


def test_check_of_an_uninstallation_reads_pods_page_by_page() -> None:
    """All pods of the cluster, as a pod may have lost its label."""
    member = b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.gated(GATE))
    cluster = _Paged([member, b.a_pod(b.a_job(), 1, b.stamped(GROUP), b.with_spec(schedulingGates=[]))])
    found = {finding.about: finding.level for finding in check_uninstall(cluster)}
    assert (found["pods with Muster's gate"], found["pods without their PodGroup"]) == (Level.FAIL,) * 2


class _WithoutWholeLists(Client):
    """A cluster that is read page by page."""

    def list(self, resource: Resource, *_: Any, **__: Any) -> Any:
        """Fail: the list may not fit into memory."""
        raise AssertionError(f"{resource.plural} were listed as a whole")


def test_check_of_an_installation_reads_namespaces_page_by_page() -> None:
    """Where tenants make their own there may be thousands."""
    with ApiServer() as server:
        server.load([b.a_namespace()])
        client = _WithoutWholeLists.for_server(server.url)
        now = datetime(2030, 1, 1, tzinfo=UTC)
        sources = [{"kind": "ApiServerSource", "spec": {"namespaceSelector": {}}, **SOURCE}]
        found = {finding.about: finding for finding in check_installation(client, sources, now)}
    assert "team-a" in found["label muster.dev/gang-jobs"].message


def test_a_list_that_expires_twice_is_an_error() -> None:
    """It is not read for ever."""
    cluster = _Paged([_waiting("one"), _waiting("two")])
    cluster.expiries = 2
    with pytest.raises(Expired):
        read_status(cluster)


def test_an_expired_list_is_let_go_of_before_it_is_read_again() -> None:
    """Its error kept the frames that had read it, and so all that they had."""
    kept: list[weakref.ref[set[str]]] = []

    def view(bodies: Iterable[Any]) -> Iterator[set[str]]:
        assert not any(other() for other in kept)
        names = {"first"}
        kept.append(weakref.ref(names))
        names.update(body["metadata"]["name"] for body in bodies)
        yield names

    cluster = _Paged([_waiting("one"), _waiting("two")])
    cluster.expiries = 1
    assert collect(cluster, JOBS, view) == [{"first", "one", "two"}]
    assert len(kept) == 2


def test_namespaces_share_what_is_shown_of_many_items(
    monkeypatch: pytest.MonkeyPatch, muster: Muster, tmp_path: Path
) -> None:
    """A tenant can make any number of Jobs that wait: 20,000 groups took 1.3 GiB. The command says so."""
    monkeypatch.setattr(status, "MOST_ITEMS", 4)
    jobs = [_waiting(f"job-{number}") for number in range(5)]
    others = [_waiting("other")]
    others[0]["metadata"]["namespace"] = "team-b"
    found = status.read_status(Snapshot([*jobs, *others]))
    assert [item.what for item in found.items] == ["job/job-0", "job/job-1", "job/job-2", "job/other"]
    assert found.left_out == 2
    with ApiServer() as server:
        server.load([*resource_definitions(), b.a_namespace(), *jobs])
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        result = muster("status", "-A", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1 + 4


@pytest.mark.thorough
def test_messages_that_name_many_groups_take_little_memory() -> None:
    """10,000 Jobs whose messages name 512 groups each took 2.4 GiB: each name of each Job was kept."""
    names = [f"{number:03x}" for number in range(400)]
    jobs = [_waiting(f"job-{number}") for number in range(300)]
    for job in jobs:
        job["status"]["conditions"][0]["message"] = " ".join(names)
    condition = {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable"}
    unplaced = b.with_status(conditions=[condition])
    groups = [b.a_pod_group(name, unplaced) for name in names]
    pods = [b.a_pod(jobs[0], 0, b.stamped(name), b.gated(GATE), b.named(f"pod-{name}")) for name in names]
    cluster = Snapshot([*jobs, *groups, *pods])
    tracemalloc.start()
    found = read_status(cluster)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert len(found.items) == len(jobs), "the first Job's condition names all groups of its pods"


def test_more_pods_than_a_cluster_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes kilobytes; a namespace may still be looked at."""
    monkeypatch.setattr(status_pods, "MOST_PODS", 3)
    pod = b.a_pod()
    pods = [{**pod, "metadata": {**pod["metadata"], "name": f"llama-{number}"}} for number in range(4)]
    assert read_status(Snapshot(pods[:3])).items
    with pytest.raises(AnswerTooLarge):
        read_status(Snapshot(pods))


def test_pods_with_and_without_the_group_label_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """400,000 took 989 MiB; pods without Muster's gate do not count, and an expired list counts once."""
    monkeypatch.setattr(status_pods, "MOST_PODS", 3)
    gated = [b.a_pod(b.a_job(), 0, b.gated(GATE), b.named(f"llama-{number}")) for number in range(4)]
    for pod in gated[2:]:
        del pod["metadata"]["labels"]["muster.dev/group"]
    others = [b.a_pod(None, 0, b.unstamped, b.named(f"other-{number}")) for number in range(5)]
    for pod in others:
        pod["metadata"]["labels"].pop("muster.dev/group", None)
    cluster = _Paged([*gated[:3], *others])
    cluster.expiries = 1
    assert read_status(cluster).items
    with pytest.raises(AnswerTooLarge):
        read_status(Snapshot(gated))


def test_names_of_groups_and_owners_are_cut() -> None:
    """A server in the place of the API server may give any."""
    pod = b.a_pod()
    pod["spec"]["schedulingGroup"] = {"podGroupName": "x" * 9_000}
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "x" * 9_000
    (outline,) = status_pods.outlines([pod])
    assert (len(outline.group), {len(value) for _, value in outline.owners}) == (253, {63})


def test_texts_are_cut_after_they_are_escaped() -> None:
    """An escaped character has up to six."""
    (_, line) = tables.fitted(("JOB", "MESSAGE"), [("llama", "\x1b" * 4096)], None)
    assert len(line) < 4200


@pytest.mark.thorough
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_data_of_many_items_are_printed_one_by_one(output: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The text of 10,000 items, each of which tenants filled, took 3.1 GiB."""
    item = Item("team-a", "job/a", State.WAITING, "", "", "\U0001f600" * 512)
    peaks = []
    for number in (5, 50):
        tracemalloc.start()
        status_command._show(ClusterStatus([item] * number), "", output)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    few, many = peaks
    assert many - few < 250_000
    assert capfd.readouterr().out.count("job/a") == 55


class _ManyGroups(Snapshot):
    """A cluster of fallback PodGroups in two namespaces in turn; each page has one, with 2 KB of emojis."""

    count = 0

    def page(self, resource: Resource, namespace: str = "", *, token: str = "", **_selectors: str) -> Page:
        """The group that the token names."""
        if resource != POD_GROUPS or namespace:
            return Page([])
        number = int(token or 0)
        body = b.a_pod_group(f"group-{number:04}", b.annotated({"muster.dev/stand-in": "\U0001f600" * 500}))
        body["metadata"]["namespace"] = ("team-a", "team-b")[number % 2]
        return Page([body], str(number + 1) if number + 1 < self.count else "")


@pytest.mark.thorough
def test_no_more_items_are_kept_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 430,000 fallback PodGroups took 1.0 GiB: all were kept until the end."""
    monkeypatch.setattr(status, "MOST_ITEMS", 20)
    cluster = _ManyGroups([])
    peaks = []
    for cluster.count in (60, 600):
        tracemalloc.start()
        found = read_status(cluster)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert [item.name for item in found.items] == [
            f"group-{number:04}" for first in (0, 1) for number in range(first, 20, 2)
        ]
        assert found.left_out == cluster.count - 20
    few, many = peaks
    assert many - few < 50_000


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_what_is_shown_does_not_depend_on_when_items_are_left_out(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The oldest of each namespace, of all kinds, although they come last; an expired list counts once."""
    objects = []
    for number in range(7):
        job, other = _waiting(f"job-{9 - number}"), _waiting(f"other-{9 - number}")
        other["metadata"]["namespace"] = "team-b" if number < 2 else "team-c"
        groups = [b.a_pod_group(f"{name}-{9 - number}", b.annotated(FALLBACK)) for name in ("a", "z")]
        objects += [
            job,
            other,
            *groups,
            b.a_trainjob(b.named(f"unplaced-{number}"), b.with_status(**UNPLACED)),
        ]
    everything = read_status(Snapshot(objects)).items
    monkeypatch.setattr(status, "MOST_ITEMS", most)
    cluster = _Paged(objects)
    cluster.expiries = 1
    found = read_status(cluster)
    assert found.items == status._shared_out(everything, most)
    assert found.left_out == len(everything) - most


@pytest.mark.thorough
def test_texts_of_a_table_are_escaped_one_by_one() -> None:
    """A table of 10,000 texts of control characters took a gigabyte, and was silent for 20 s."""
    rows = [("llama", "\x1b" * 2_000)] * 300
    tracemalloc.start()
    assert sum(1 for _ in tables.fitted(("JOB", "MESSAGE"), rows, None)) == 301
    assert tracemalloc.get_traced_memory()[1] < 500_000
    tracemalloc.stop()


def test_a_watch_pauses_for_half_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large cluster, where a look takes longer; what the printing takes does not count."""
    clock = iter(range(0, 10_000, 60))
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("muster.cli.status.time.sleep", sleep)
    monkeypatch.setattr("muster.cli.status.time.monotonic", lambda: next(clock))
    with pytest.raises(KeyboardInterrupt):
        status_command._watch(ClusterStatus, lambda _status: None)
    assert pauses == [30.0]


def test_check_names_no_more_invalid_policies_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 30,000 Jobs, each of 16 KB of emojis, which a message had in 49 KB, took 1.4 GiB."""
    monkeypatch.setattr(policies, "MOST_FINDINGS", 2)
    text = '{"volcano": {"queue": "' + "\U0001f600" * 3_500 + '"}}'
    jobs = [b.a_job(b.named(f"job-{number}"), b.annotated({POLICY: text})) for number in range(5)]
    *named, others, last = check_policies(
        _Paged([*jobs, b.a_job(b.annotated({POLICY: "workload: {}"}))]), "home"
    )
    assert len(named) == 2
    assert max(len(finding.message) for finding in named) < 3_000
    assert (others.level, others.message.split()[0], last.message.split()[0]) == (Level.WARN, "3", "1")

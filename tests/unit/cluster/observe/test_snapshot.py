"""A cluster made of files."""

from __future__ import annotations

import pytest

from muster.cluster.observe.snapshot import ReadOnlyError, Snapshot
from muster.objects.patches import PatchType
from muster.objects.resources import JOBS, JOBSETS, NAMESPACES
from muster.policy.model import Action, Verb
from tests.support.builders import (
    a_job,
    a_namespace,
    a_pod,
    a_trainjob,
    an_object,
    labelled,
    named,
    ref,
)


class TestSnapshot:
    """A cluster made of files answers as a live one, and takes no writes."""

    @pytest.mark.parametrize(
        ("labels", "names"),
        [
            pytest.param("", ["a", "b"], id="everything"),
            pytest.param("x=1", ["a"], id="a value"),
            pytest.param("x==1", ["a"], id="a value, spelled with two"),
            pytest.param("x!=1", ["b"], id="another value, or none"),
            pytest.param("x", ["a"], id="a key"),
            pytest.param("!x", ["b"], id="no key"),
            pytest.param("x=1,y=2", [], id="both"),
        ],
    )
    def test_label_selectors(self, labels: str, names: list[str]) -> None:
        """Equality and existence."""
        cluster = Snapshot([a_job(named("a"), labelled({"x": "1"})), a_job(named("b"))])
        assert [body["metadata"]["name"] for body in cluster.list(JOBS, labels=labels)] == names

    def test_a_selector_that_cannot_be_read(self) -> None:
        """Sets are not in use."""
        with pytest.raises(ValueError, match=r"x in \(1\)"):
            Snapshot([a_job()]).list(JOBS, labels="x in (1)")

    def test_field_selectors_and_namespaces(self) -> None:
        """By dotted path; another namespace has other objects."""
        cluster = Snapshot([a_job()])
        assert len(cluster.list(JOBS, "team-a", fields="metadata.name=llama,spec.parallelism=2")) == 1
        assert cluster.list(JOBS, "team-b") == cluster.list(JOBSETS) == []

    def test_kinds_unknown_to_us_are_left_out(self) -> None:
        """A file may hold more than Muster reads."""
        cluster = Snapshot([an_object("apps/v1", "Deployment", "web", "u"), a_namespace()])
        assert cluster.get(NAMESPACES, "team-a") == a_namespace()

    def test_it_serves_the_apis_of_kubernetes_1_37(self) -> None:
        """All of scheduling.k8s.io and nothing else."""
        cluster = Snapshot([])
        cluster.refresh()
        assert "v1beta1/podgroups" in cluster.served_versions("scheduling.k8s.io")
        assert cluster.served_versions("batch") == frozenset()
        assert cluster.scheduling().served

    @pytest.mark.parametrize(
        ("write", "named"),
        [
            pytest.param(Action(Verb.CREATE, ref(a_job()), a_job()), "Job team-a/llama", id="a create"),
            pytest.param(Action(Verb.UPDATE, ref(a_job()), a_job()), "Job team-a/llama", id="a replace"),
            pytest.param(
                Action(Verb.PATCH, ref(a_pod()), {}, patch=PatchType.MERGE),
                "Pod team-a/llama-0",
                id="a patch",
            ),
            pytest.param(Action(Verb.DELETE, ref(a_trainjob())), "TrainJob team-a/llama", id="a delete"),
        ],
    )
    def test_writes_are_refused(self, write: Action, named: str) -> None:
        """Only planning happens on one."""
        with pytest.raises(ReadOnlyError, match=named):
            Snapshot([]).write(write, "m")

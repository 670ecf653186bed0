"""Creations that the API server refuses: what is carried out in place of them, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.cluster import errors, execute
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.policy import limits
from muster.policy.model import Action, Verb
from muster.policy.reasons import Reason
from tests.support.builders import a_pod, ref
from tests.unit.cluster.test_execute import WriteRecorder, a_plan, creation, written_names


@pytest.mark.parametrize("error", [errors.Invalid("never"), errors.Forbidden("quota")])
def test_a_refused_creation_does_not_stop_the_others(error: errors.ClusterError) -> None:
    """One group of a missing PriorityClass keeps the pods of no other group gated."""
    cluster = WriteRecorder(a=error, c=errors.Invalid("the second"))
    with pytest.raises(type(error)) as raised:
        execute.in_order(cluster, a_plan(*map(creation, "abcd")), "m")
    assert raised.value is error
    assert written_names(cluster) == ["b", "d"]


def test_refusals_count_as_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a tenant wrote, an event takes no more requests than that."""
    names = [f"g{number}" for number in range(5)]
    cluster = WriteRecorder(**{name: errors.Forbidden("quota") for name in names[:4]})
    monkeypatch.setattr(limits, "WRITES", 3)
    done = execute.in_order(cluster, a_plan(*map(creation, names)), "m")
    assert (done.reason, done.requeue, cluster.tries) == (Reason.WRITE_LIMIT, True, 3)


def test_a_cause_of_refusals_is_met_once() -> None:
    """Groups of one template and size differ in their names: the others get their fallbacks at once."""

    def group(name: str) -> Action:
        body = {"metadata": {"name": name}, "spec": {"priorityClassName": "none"}}
        return replace(creation(name), body=body, if_refused=(creation(f"fallback-{name}"),))

    cluster = WriteRecorder(a=errors.Invalid("x"), b=errors.Invalid("x"))
    done = execute.in_order(cluster, a_plan(*map(group, "abc")), "m")
    assert [action.target.name for action in done.actions] == ["fallback-a", "fallback-b", "fallback-c"]
    assert cluster.tries == 4


def test_objects_that_are_no_groups_are_tried_one_by_one() -> None:
    """A step of one's own may create ConfigMaps, of which the name of one is taken by a rule of others."""

    def config_map(name: str) -> Action:
        return Action(Verb.CREATE, ObjectRef("v1", "ConfigMap", "team-a", name), {"data": {}})

    cluster = WriteRecorder(a=errors.Forbidden("no such name"))
    with pytest.raises(errors.Forbidden):
        execute.in_order(cluster, a_plan(*map(config_map, "ab")), "m")
    assert written_names(cluster) == ["b"]


def test_nothing_is_created_below_a_refused_composite() -> None:
    """Pods that a policy holds keep their gate: their PodGroup would be below nothing."""
    composite = ObjectRef("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "team-a", "top")
    event = creation("event", optional=True)
    top = replace(creation("top", if_refused=(event,)), target=composite)

    def below(parent: str, name: str, target: ObjectRef | None = None) -> Action:
        action = creation(name)
        body = {**(action.body or {}), "spec": {"parentCompositePodGroupName": parent}}
        return replace(action, body=body, target=target or action.target)

    middle = below("top", "middle", replace(composite, name="middle"))
    cluster = WriteRecorder(top=errors.Forbidden("quota"))
    execute.in_order(cluster, a_plan(top, middle, below("middle", "leaf"), creation("b")), "m")
    assert written_names(cluster) == ["event", "b"]


def test_nothing_is_deleted_after_a_refusal() -> None:
    """What was to take its place may be refused, too."""
    cluster = WriteRecorder(a=errors.Forbidden("quota"))
    plan = a_plan(creation("a"), Action(Verb.DELETE, ref(a_pod())), creation("b"))
    with pytest.raises(errors.Forbidden):
        execute.in_order(cluster, plan, "m")
    assert written_names(cluster) == ["b"]


def test_a_namespace_that_is_being_deleted_ends_a_plan() -> None:
    """It refuses all that is new."""
    cluster = WriteRecorder(a=errors.Terminating("being terminated"))
    with pytest.raises(errors.Terminating):
        execute.in_order(cluster, a_plan(creation("a", if_refused=(creation("f"),)), creation("b")), "m")
    assert cluster.tries == 1


def test_a_refused_fallback_does_not_stop_the_others() -> None:
    """Nor do fallbacks that an earlier delivery created."""
    cluster = WriteRecorder(a=errors.Invalid("x"), f=errors.Forbidden("quota"), g=errors.AlreadyExists("g"))
    fallbacks = tuple(map(creation, "efgh"))
    with pytest.raises(errors.Forbidden):
        execute.in_order(cluster, a_plan(creation("a", if_refused=fallbacks), creation("b")), "m")
    assert written_names(cluster) == ["e", "h", "b"]


def test_a_refused_patch_ends_a_plan() -> None:
    """What follows a patch may need it."""
    cluster = WriteRecorder(b=errors.Invalid("never"))
    patch = replace(creation("b"), verb=Verb.PATCH, patch=PatchType.MERGE)
    with pytest.raises(errors.Invalid):
        execute.in_order(cluster, a_plan(creation("a"), patch, creation("c")), "m")
    assert written_names(cluster) == ["a"]


def test_only_its_event_follows_a_refused_update() -> None:
    """Else an Event would say that a runtime was changed, which it was not."""
    cluster = WriteRecorder(a=errors.Invalid("never"))
    update = replace(creation("a", if_refused=(creation("refused"),)), verb=Verb.UPDATE)
    done = execute.in_order(cluster, a_plan(update, creation("done")), "m")
    assert written_names(cluster) == ["refused"]
    assert [action.target.name for action in done.actions] == ["refused"]

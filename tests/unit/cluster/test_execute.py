"""Executing a plan: order of writes, refusals, optional actions, and continuing after an error."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster import errors, execute
from muster.cluster.interface import Object
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.meta import ObjectRef
from muster.policy.model import Action, Plan, Verb
from muster.policy.reasons import Reason


class WriteRecorder(Snapshot):
    """Remembers writes; a name that is listed fails instead, as often as it has errors."""

    def __init__(self, **failures: list[Exception]) -> None:
        super().__init__([])
        self.written: list[str] = []
        self.bodies: list[Object] = []
        self._failures = failures

    def write(self, action: Action, manager: str) -> Object:  # noqa: ARG002 - the same for all writes
        """Remembered."""
        if waiting := self._failures.get(action.target.name.replace("-", "_")):
            raise waiting.pop(0)
        self.written.append(action.target.name)
        self.bodies.append(dict(action.body or {}))
        return {}


def creation(name: str, *, kind: str = "PodGroup", text: str = "", **more: Any) -> Action:
    """Return the creation of a group with a text in an annotation."""
    metadata = {"name": name, "namespace": "team-a", "annotations": {"why": text}}
    body = {"metadata": metadata, "spec": {"priorityClassName": name}}
    return Action(Verb.CREATE, ObjectRef("scheduling.k8s.io/v1beta1", kind, "team-a", name), body, **more)


def a_plan(*actions: Action) -> Plan:
    """Return a plan of these actions."""
    return Plan(Reason.POD_GROUPS_CREATED, "", actions)


@pytest.mark.parametrize(
    "error", [errors.AlreadyExists("taken"), errors.Conflict("in between"), errors.Unavailable("away")]
)
def test_the_first_failure_ends_a_plan(error: errors.ClusterError) -> None:
    """What came before is done, what comes after is not begun."""
    cluster = WriteRecorder(b=[error])
    with pytest.raises(type(error)):
        execute.in_order(cluster, a_plan(creation("a"), creation("b"), creation("c")), "m")
    assert cluster.written == ["a"]


@pytest.mark.parametrize("error", [errors.Invalid("never"), errors.Unavailable("away"), errors.Gone("gone")])
def test_an_optional_action_that_fails_is_left_out(error: errors.ClusterError) -> None:
    """An Event that is lost costs a message; the returned plan does not contain it."""
    actions = (creation("event", optional=True), creation("b"))
    assert execute.in_order(WriteRecorder(event=[error]), a_plan(*actions), "m") == a_plan(actions[1])


QUOTES = 'PodGroup "a" is invalid: spec: {refusal} \\ "x\ny": ü'


@pytest.mark.parametrize("error", [errors.Invalid(QUOTES), errors.Forbidden(QUOTES)])
def test_the_fallback_of_a_refused_action_quotes_the_server(error: errors.ClusterError) -> None:
    """The plan that comes back is what was done."""
    fallback = creation("fallback", text="RefusedByApi: {refusal}")
    cluster = WriteRecorder(a=[error])
    done = execute.in_order(cluster, a_plan(creation("a", if_refused=(fallback,)), creation("b")), "m")
    assert cluster.bodies[0]["metadata"]["annotations"]["why"] == f"RefusedByApi: {QUOTES}"
    assert [action.target.name for action in done.actions] == ["fallback", "b"]


def test_fallbacks_of_a_refused_composite_replace_its_children() -> None:
    """They have the names of its children, which are not made a second time; one may exist already."""
    instead = (creation("child-0"), creation("child-1"))
    plan = a_plan(creation("parent", kind="CompositePodGroup", if_refused=instead), *instead, creation("b"))
    cluster = WriteRecorder(parent=[errors.Forbidden("no role")], child_0=[errors.AlreadyExists("taken")] * 2)
    with pytest.raises(errors.AlreadyExists):
        execute.in_order(cluster, plan, "m")
    assert cluster.written == ["child-1"]
    cluster = WriteRecorder(parent=[errors.Forbidden("no role")])
    execute.in_order(cluster, plan, "m")
    assert cluster.written == ["child-0", "child-1", "b"]


def test_writes_beyond_the_limit_follow_at_the_next_delivery() -> None:
    """The event comes again."""
    done = execute.in_order(WriteRecorder(), a_plan(*(creation(f"g{i}") for i in range(101))), "m")
    assert (len(done.actions), done.reason, done.requeue) == (100, Reason.WRITE_LIMIT, True)


GATES = a_plan(*(creation(f"llama-{index}") for index in range(4)))
OTHER_UID = errors.Invalid('Pod "llama-0" is invalid: metadata.uid: Invalid value: "x": field is immutable')


def test_in_parallel_every_action_is_tried() -> None:
    """One gated pod holds back its whole group, so no error stops the others; the first one is raised."""
    cluster = WriteRecorder(llama_0=[errors.Conflict("first")], llama_2=[errors.Invalid("second")])
    with pytest.raises(errors.Conflict, match="first"):
        execute.in_parallel(cluster, GATES, "m")
    assert sorted(cluster.written) == ["llama-1", "llama-3"]


@pytest.mark.parametrize("error", [errors.Gone("gone"), OTHER_UID], ids=["gone", "another pod has its name"])
def test_in_parallel_a_pod_that_is_gone_is_done(error: errors.ClusterError) -> None:
    """There is nothing left to write."""
    assert len(execute.in_parallel(WriteRecorder(llama_0=[error]), GATES, "m").actions) == 3


def test_the_refusal_of_what_was_taken_for_absent_is_not_believed() -> None:
    """A quota refuses also what exists: the step runs again, with reads."""
    cluster = WriteRecorder(a=[errors.Forbidden("exceeded quota"), errors.Forbidden("exceeded quota")])
    plan = a_plan(creation("a", if_refused=(creation("fallback"),)))
    cluster.expects_new = True
    with pytest.raises(errors.Conflict, match="exceeded quota"):
        execute.in_order(cluster, plan, "m")
    cluster.expects_new = False
    execute.in_order(cluster, plan, "m")
    assert cluster.written == ["fallback"]

"""Executing a plan: order of writes, refusals, optional actions, and continuing after an error."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from functions.create_pod_groups.function.step import STEP as CREATE_POD_GROUPS
from muster.cluster import errors, execute
from muster.cluster.interface import Object
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.policy.group_labels import GROUP_SIZE
from muster.policy.model import Action, Plan, Verb
from muster.policy.plans.patch_pods import remove_gate
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    a_gang,
    a_job,
    a_pod,
    a_workload,
    observed,
    ref,
    template_labelled,
)
from tests.support.planning import plan_pod_groups

Written = tuple[str, str, Any, str]


class WriteRecorder(Snapshot):
    """Remembers writes; a name that is listed fails instead."""

    def __init__(self, **failures: Exception | list[Exception]) -> None:
        super().__init__([])
        self.written: list[Written] = []
        self.tries = 0
        self._failures = {name: one if isinstance(one, list) else [one] for name, one in failures.items()}

    def write(self, action: Action, manager: str) -> Object:
        """Remembered."""
        target = action.target
        self.tries += 1
        waiting = self._failures.get(target.name, [])
        if waiting:
            raise waiting.pop(0)
        media = action.patch.name if action.patch else ""
        done = " ".join(filter(None, (action.verb, media, action.subresource, target.kind)))
        content = target.uid if action.verb is Verb.DELETE else action.operations or action.body
        self.written.append((done, target.name, content, manager))
        return {}


def creation(
    name: str, *, optional: bool = False, if_refused: tuple[Action, ...] = (), text: str = ""
) -> Action:
    """Return the creation of a PodGroup, whose priority class has its name."""
    metadata = {"name": name, "namespace": "team-a", "annotations": {"why": text}}
    body = {"metadata": metadata, "spec": {"priorityClassName": name}}
    target = ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", name)
    return Action(Verb.CREATE, target, body, optional=optional, if_refused=if_refused)


def a_plan(*actions: Action) -> Plan:
    """Return a plan of these actions."""
    return Plan(Reason.POD_GROUPS_CREATED, "", actions)


def written_names(cluster: WriteRecorder) -> list[str]:
    """Return the names of the objects that were written, in order."""
    return [name for _, name, _, _ in cluster.written]


def test_actions_are_carried_out_in_order() -> None:
    """Each as its verb says, under the step's field manager."""
    pod = ref(a_pod())
    actions = (
        creation("a"),
        Action(Verb.PATCH, pod, {"x": 1}, patch=PatchType.MERGE, subresource="status"),
        Action(Verb.DELETE, pod),
    )
    cluster = WriteRecorder()
    assert execute.in_order(cluster, a_plan(*actions), "muster-test") == a_plan(*actions)
    assert cluster.written == [
        ("create PodGroup", "a", actions[0].body, "muster-test"),
        ("patch MERGE status Pod", "llama-0", {"x": 1}, "muster-test"),
        ("delete Pod", "llama-0", "llama-0-uid", "muster-test"),
    ]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            errors.AlreadyExists("taken"), id="a name that is taken: the event comes again and sees it"
        ),
        pytest.param(errors.Conflict("in between"), id="a write in between"),
        pytest.param(errors.Unavailable("away"), id="no answer"),
    ],
)
def test_the_first_failure_ends_a_plan(error: errors.ClusterError) -> None:
    """What came before is done, what comes after is not begun."""
    cluster = WriteRecorder(b=error)
    with pytest.raises(type(error)):
        execute.in_order(cluster, a_plan(creation("a"), creation("b"), creation("c")), "m")
    assert written_names(cluster) == ["a"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errors.Invalid("never"), id="refused"),
        pytest.param(errors.AlreadyExists("taken"), id="there already"),
        pytest.param(errors.Unavailable("away"), id="no answer"),
        pytest.param(errors.Gone("no namespace"), id="gone"),
    ],
)
def test_a_failed_optional_action_never_stops_a_plan(error: errors.ClusterError) -> None:
    """An Event that is lost costs a message; the returned plan does not contain it."""
    cluster = WriteRecorder(event=error)
    actions = (creation("event", optional=True), creation("b"))
    assert execute.in_order(cluster, a_plan(*actions), "m") == a_plan(actions[1])
    assert written_names(cluster) == ["b"]


QUOTES = 'PodGroup "a" is invalid: spec: {refusal} \\ "x\ny": ü'


@pytest.mark.parametrize(
    "error",
    [pytest.param(errors.Invalid(QUOTES), id="422"), pytest.param(errors.Forbidden(QUOTES), id="403")],
)
def test_the_fallback_of_a_refused_action_quotes_the_server(error: errors.ClusterError) -> None:
    """Quotes, backslashes and line ends survive; the plan that comes back is what was done."""
    instead = (
        creation("fallback", text="RefusedByApi: {refusal}"),
        creation("event", optional=True, text="{refusal}"),
    )
    cluster = WriteRecorder(a=error)
    done = execute.in_order(cluster, a_plan(creation("a", if_refused=instead), creation("b")), "m")
    texts = [body["metadata"]["annotations"]["why"] for _, _, body, _ in cluster.written]
    assert texts == [f"RefusedByApi: {QUOTES}", QUOTES, ""]
    assert [action.target.name for action in done.actions] == ["fallback", "event", "b"]
    assert instead[0].body == creation("fallback", text="RefusedByApi: {refusal}").body


def test_a_conflict_is_no_refusal() -> None:
    """The fallback group is only for what the API server will never accept."""
    cluster = WriteRecorder(a=errors.AlreadyExists("taken"))
    with pytest.raises(errors.AlreadyExists):
        execute.in_order(cluster, a_plan(creation("a", if_refused=(creation("b"),))), "m")
    assert cluster.written == []


def test_a_refused_fallback_group_is_an_error() -> None:
    """A quota refuses both."""
    cluster = WriteRecorder(a=[errors.Forbidden("quota"), errors.Forbidden("quota")])
    with pytest.raises(errors.Forbidden):
        execute.in_order(cluster, a_plan(creation("a", if_refused=(creation("a"),))), "m")


def test_fallback_groups_of_a_refused_composite_replace_its_children() -> None:
    """They have the names of its children, which are not made a second time; what comes after them is."""
    instead = (creation("child-0"), creation("child-1"))
    plan = a_plan(
        creation("parent", if_refused=instead),
        creation("child-0"),
        creation("child-1"),
        creation("b"),
    )
    cluster = WriteRecorder(parent=errors.Forbidden("no role"))
    done = execute.in_order(cluster, plan, "m")
    assert written_names(cluster) == ["child-0", "child-1", "b"]
    assert done == a_plan(*instead, creation("b"))


def test_fallback_groups_of_an_earlier_delivery_count_as_done() -> None:
    """A composite that is refused again and again must not make its event come again until it is dead."""
    instead = (creation("child-0"), creation("child-1"))
    cluster = WriteRecorder(parent=errors.Forbidden("no role"), **{"child-0": errors.AlreadyExists("taken")})
    done = execute.in_order(cluster, a_plan(creation("parent", if_refused=instead)), "m")
    assert done == a_plan(instead[1])


def test_the_fallback_group_quotes_the_server() -> None:
    """What create_pod_groups prepares and what execute fills in fit together."""
    plan = plan_pod_groups(observed(workload=a_workload()), NOW)
    assert isinstance(plan, Plan)
    why = 'no PriorityClass with name "hi" was found'
    cluster = WriteRecorder(**{"llama-main-33333333": errors.Forbidden(why)})
    execute.in_order(cluster, plan, "m")
    event, fallback_group = (body for _, _, body, _ in cluster.written)
    assert fallback_group["metadata"]["annotations"] == {"muster.dev/stand-in": f"RefusedByApi: {why}"}
    assert event["message"] == why


def test_another_refusal_is_another_event() -> None:
    """A reported Event lives for an hour under its name; the same message again adds nothing to it."""
    plan = plan_pod_groups(observed(workload=a_workload()), NOW)
    assert isinstance(plan, Plan)

    def event_for(why: str) -> tuple[str, str]:
        cluster = WriteRecorder(**{"llama-main-33333333": errors.Forbidden(why)})
        done = execute.in_order(cluster, plan, "m")
        _, name, body, _ = cluster.written[0]
        assert (body["kind"], body["metadata"]["name"]) == ("Event", name)
        return name, done.actions[0].target.name

    quota, role = event_for("exceeded quota"), event_for("no role")
    assert quota == event_for("exceeded quota")
    assert quota != role
    assert len({*quota, *role}) == 2


def test_a_refused_fallback_group_is_reported_in_an_event() -> None:
    """A quota of no PodGroups: the owner has an Event, and the event comes again."""
    plan = plan_pod_groups(observed(workload=a_workload()), NOW)
    assert isinstance(plan, Plan)
    quota = errors.Forbidden("exceeded quota: no-groups")
    failures: dict[str, Exception | list[Exception]] = {"llama-main-33333333": [quota, quota]}
    cluster = WriteRecorder(**failures)
    with pytest.raises(errors.Forbidden):
        execute.in_order(cluster, plan, "m")
    assert [body["message"] for _, _, body, _ in cluster.written] == ["exceeded quota: no-groups"]


@pytest.mark.parametrize(
    ("on_failure", "refused", "named"),
    [
        pytest.param("Hold", "01", None, id="all are refused and the pods held: nothing was created"),
        pytest.param("Hold", "1", ["0"], id="one is refused and its pods held: the other was created"),
        pytest.param(
            "Basic", "0", ["0", "1"], id="one is refused: its fallback group and the other were created"
        ),
        pytest.param("Hold", "", ["0", "1"], id="none is refused"),
    ],
)
def test_the_reply_names_only_created_groups(on_failure: str, refused: str, named: list[str] | None) -> None:
    """Others hang their steps on it, and a group that was refused does not exist."""
    group = "llama-main-33333333-"
    blocks = a_job(template_labelled({GROUP_SIZE: "1"}), pods=2)
    source = PolicySource(PolicySourceKind.OWNER, "home", f"workload: {{onFailure: {on_failure}}}")
    given = observed(blocks, workload=a_workload(a_gang("main", 1), root=blocks), sources=(source,))
    plan = plan_pod_groups(given, NOW)
    assert isinstance(plan, Plan)
    cluster = WriteRecorder(**{f"{group}{index}": errors.Forbidden("no") for index in refused})
    reply = CREATE_POD_GROUPS.execute(cluster, plan, "m").reply
    assert (reply.data["podGroups"] if reply else None) == (named and [f"{group}{index}" for index in named])
    assert reply is None or reply.data["workload"] == "llama-86f65b7bb7"


PODS = [a_pod(None, index) for index in range(4)]
LIFT_ALL = Plan(Reason.GATES_LIFTED, "", tuple(map(remove_gate, observed(pods=PODS).pods)))
OTHER_UID = errors.Invalid('Pod "llama-0" is invalid: metadata.uid: Invalid value: "x": field is immutable')


def _lift(**failures: Exception) -> tuple[WriteRecorder, Plan]:
    cluster = WriteRecorder(**{name.replace("_", "-"): error for name, error in failures.items()})
    return cluster, execute.in_parallel(cluster, LIFT_ALL, "muster-patch-pods")


class MeetingWrites(WriteRecorder):
    """Answers a write when so many others have begun; fails after a second without them."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._meeting = threading.Barrier(number, timeout=1.0)

    def write(self, action: Action, manager: str) -> Object:
        """Remembered."""
        self._meeting.wait()
        return super().write(action, manager)


@pytest.mark.thorough
def test_each_carries_out_four_actions_at_the_same_time() -> None:
    """A gang waits for its last gate, and each removal for the API server."""
    assert len(execute.in_parallel(MeetingWrites(4), LIFT_ALL, "muster-patch-pods").actions) == 4
    with pytest.raises(threading.BrokenBarrierError):
        execute.in_parallel(MeetingWrites(5), LIFT_ALL, "muster-patch-pods")


def test_each_tries_every_action() -> None:
    """One gated pod holds back its whole group, so no error stops the others; the first one is raised."""
    cluster = WriteRecorder(**{"llama-0": errors.Conflict("first"), "llama-2": errors.Unavailable("second")})
    with pytest.raises(errors.Conflict, match="first"):
        execute.in_parallel(cluster, LIFT_ALL, "muster-patch-pods")
    assert sorted(written_names(cluster)) == ["llama-1", "llama-3"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errors.Gone("gone"), id="the pod is gone"),
        pytest.param(OTHER_UID, id="another pod has its name"),
    ],
)
def test_each_takes_a_pod_that_is_gone_as_done(error: errors.ClusterError) -> None:
    """There is nothing left to let go."""
    cluster, done = _lift(llama_0=error)
    assert sorted(written_names(cluster)) == ["llama-1", "llama-2", "llama-3"]
    assert len(done.actions) == 3


def test_each_raises_another_refusal() -> None:
    """A 422 that is not about the UID is an error like all others."""
    with pytest.raises(errors.Invalid):
        _lift(llama_0=errors.Invalid("spec.schedulingGates: only deletion is allowed"))

"""A sweep deletes objects of Muster's whose owner is gone, and nothing else."""

from __future__ import annotations

import pytest

from muster.objects.meta import KubernetesObject
from muster.objects.scheduling import PodGroup, Workload
from muster.policy.model import Action, Decision, NoOp, Plan, Verb
from muster.policy.plans.orphans import OrphanInputs, owner_uids, plan_orphan
from muster.policy.reasons import Reason
from tests.support.builders import (
    JOB_UID,
    JOBSET_UID,
    TRAINJOB_UID,
    Object,
    a_job,
    a_pod_group,
    a_trainjob,
    a_users_workload,
    a_workload,
    being_deleted,
    ref,
)
from tests.support.messages import mentions, without_message

OF_JOBSET = a_pod_group("llama-trainer-22222222-3", root=a_trainjob())
OF_STRAYS = a_pod_group("old-main-deadbeef", root=a_job())


def _removed(body: Object) -> Plan:
    return Plan(Reason.ORPHANS_REMOVED, "", (Action(Verb.DELETE, ref(body)),))


KEPT = NoOp(Reason.UP_TO_DATE)


@pytest.mark.parametrize(
    ("body", "live", "decision"),
    [
        pytest.param(a_workload(), {JOB_UID}, KEPT, id="its owner lives"),
        pytest.param(a_workload(), {"another"}, _removed(a_workload()), id="its owner is gone"),
        pytest.param(
            a_workload(modifiers=[being_deleted]),
            set(),
            KEPT,
            id="it is on its way out already",
        ),
        pytest.param(OF_JOBSET, {TRAINJOB_UID, JOBSET_UID}, KEPT, id="TrainJob and JobSet live"),
        pytest.param(
            OF_JOBSET, {TRAINJOB_UID, "99999999-x"}, _removed(OF_JOBSET), id="the JobSet was rebuilt"
        ),
        pytest.param(OF_JOBSET, {JOBSET_UID}, _removed(OF_JOBSET), id="only the JobSet is left"),
        pytest.param(OF_STRAYS, {JOB_UID}, KEPT, id="a Job's, named after a JobSet that is gone"),
        pytest.param(OF_STRAYS, set(), _removed(OF_STRAYS), id="that Job is gone too"),
        pytest.param(
            a_users_workload(),
            set(),
            NoOp(Reason.NOT_MUSTERS),
            id="the user's own is never removed",
        ),
    ],
)
def test_orphans(body: Object, live: set[str], decision: Decision) -> None:
    """An object goes, by UID, when its owner is gone or the JobSet it is named after was rebuilt."""
    view: type[KubernetesObject] = Workload if body["kind"] == "Workload" else PodGroup
    obj = view.read(body)
    assert isinstance(obj, Workload | PodGroup)
    planned = plan_orphan(OrphanInputs(obj, owner_uids(live)))
    assert without_message(planned) == decision
    assert mentions(planned.message, body["kind"], f"team-a/{body['metadata']['name']}")

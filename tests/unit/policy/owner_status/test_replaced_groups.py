"""PodGroupsReady when a user replaced a PodGroup of an owner by another of the same name."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    a_pod_group,
    a_workload,
    annotated,
    labelled,
    observed,
    placed,
    with_spec,
)
from tests.support.conditions import FREE, NAME, RUNNING, planned_conditions
from tests.support.messages import mentions
from tests.support.planning import Observed

FOREIGN = labelled({"app.kubernetes.io/managed-by": "somebody"})
OF_ANOTHER_OWNER = labelled({"muster.dev/owner-uid": "another"})


@pytest.mark.parametrize(
    ("given", "status", "reason", "facts"),
    [
        pytest.param(
            observed(groups=[a_pod_group(NAME, FOREIGN, min_count=500)], pods=FREE, workload=a_workload()),
            "False",
            "NotMusters",
            (NAME,),
            id="one without Muster's labels, whose minCount is never reached",
        ),
        pytest.param(
            observed(
                groups=[a_pod_group(NAME, OF_ANOTHER_OWNER, min_count=500)], pods=FREE, workload=a_workload()
            ),
            "False",
            "NotMusters",
            (NAME, 500),
            id="one with the labels of another owner",
        ),
        pytest.param(
            observed(groups=[a_pod_group(NAME, FOREIGN)], pods=FREE, workload=a_workload()),
            "True",
            "PodGroupsExist",
            ("not created by Muster", NAME),
            id="a user's own group that its pods can fill: it is adopted",
        ),
        pytest.param(
            observed(groups=[a_pod_group(NAME, min_count=500)], pods=FREE, workload=a_workload()),
            "False",
            "NotAsCreated",
            (NAME, 500, 2),
            id="one with Muster's labels and a minCount that no step would set",
        ),
        pytest.param(
            observed(groups=[a_pod_group(NAME, min_count=None)], pods=FREE, workload=a_workload()),
            "False",
            "NotAsCreated",
            (NAME, "basic", "gang"),
            id="a basic one in place of a gang",
        ),
        pytest.param(
            observed(groups=[a_pod_group(NAME, placed)], pods=RUNNING, workload=a_workload()),
            "True",
            "PodGroupsExist",
            (),
            id="Muster's own",
        ),
        pytest.param(
            observed(
                groups=[
                    a_pod_group(
                        NAME, annotated({"muster.dev/stand-in": "RefusedByApi: quota"}), min_count=None
                    )
                ],
                pods=FREE,
                workload=a_workload(),
            ),
            "False",
            "RefusedByApi",
            (),
            id="Muster's fallback, which says why itself",
        ),
        pytest.param(
            observed(
                groups=[a_pod_group(NAME, annotated({"muster.dev/stand-in": "no reason"}), min_count=None)],
                pods=FREE,
                workload=a_workload(),
            ),
            "False",
            "NotAsCreated",
            (NAME,),
            id="one with Muster's labels and an annotation that is no reason",
        ),
        pytest.param(
            observed(
                groups=[
                    a_pod_group(
                        NAME, FOREIGN, annotated({"muster.dev/stand-in": "RefusedByApi: x"}), min_count=500
                    )
                ],
                pods=FREE,
                workload=a_workload(),
            ),
            "False",
            "NotMusters",
            (NAME, 500),
            id="one without Muster's labels, with the annotation of a fallback",
        ),
    ],
)
def test_ready_means_as_muster_created_them(
    given: Observed, status: str, reason: str, facts: tuple[object, ...]
) -> None:
    """A PodGroup of the right name is not enough: the pods may wait for it for ever."""
    ready = planned_conditions(given)["PodGroupsReady"]
    assert ready[:2] == (status, reason)
    assert mentions(ready[2], *facts)


def test_a_gang_that_shrinks_is_as_muster_created_it() -> None:
    """Its Job has fewer pods by now; its minCount is that of its template until resize_gang lowers both."""
    larger = {"name": "main", "schedulingPolicy": {"gang": {"minCount": 4}}}
    workload = a_workload(modifiers=[with_spec(podGroupTemplates=[larger])])
    given = observed(groups=[a_pod_group(NAME, min_count=4)], pods=FREE, workload=workload)
    assert planned_conditions(given)["PodGroupsReady"][:2] == ("True", "PodGroupsExist")

"""Hypothesis strategies for JobSets whose policies have groups of groups per Job and per block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from muster.policy import group_labels
from muster.policy.group_labels import Shape
from tests.support.builders import Object, a_jobset, a_replicated_job, template_labelled

_SIZES = (8, 4, 2, 1)
"""Each is a divisor of those before it."""


@dataclass
class _Drawing:
    """The replicatedJobs and the number of names that were drawn so far."""

    draw: st.DrawFn
    entries: list[Object] = field(default_factory=list)
    names: int = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def composite(self, level: int, above: Shape) -> dict[str, Any]:
        """Draw a group of groups of up to two children."""
        group: dict[str, Any] = {"name": self.name("c"), "schedulingPolicy": {"gang": {}}}
        if self.draw(st.booleans()):
            group["per"] = "Job"
        sizes = [size for size in _SIZES if not above.size % size]
        if self.draw(st.integers(0, 2)) == 0:
            group["size"] = self.draw(st.sampled_from(sizes))
        shape = Shape(above.per_job or "per" in group, group.get("size", above.size))
        group["groups"] = []
        for _ in range(self.draw(st.integers(1, 2))):
            if level < 3 and self.draw(st.booleans()):
                group["groups"].append(self.composite(level + 1, shape))
            else:
                group["groups"] += self.leaves(shape)
        return group

    def leaves(self, above: Shape) -> list[dict[str, Any]]:
        """Draw the group of a replicatedJob, and one of its leaders where these are in no block."""
        name, lead = self.name("g"), self.name("l")
        shape = Shape(
            above.per_job or self.draw(st.booleans()),
            self.draw(
                st.sampled_from([size for size in _SIZES if not above.size % size])
                if above.size
                else st.sampled_from([0, 0, 2, 3])
            ),
        )
        labels = {group_labels.GROUP_PER: shape.per, group_labels.GROUP_SIZE: str(shape.size or "")}
        leads = above.size == 0 and self.draw(st.booleans())
        if leads:
            per = Shape(above.per_job or self.draw(st.booleans())).per
            labels |= {group_labels.LEADER_GROUP: lead, group_labels.LEADER_GROUP_PER: per}
        labels = {label: value for label, value in labels.items() if value}
        replicas, pods = self.draw(st.integers(1, 3)), self.draw(st.integers(0, 9))
        self.entries.append(
            a_replicated_job(
                f"job-{len(self.entries)}",
                template_labelled(labels),
                pods=pods,
                replicas=replicas,
                label=name,
            )
        )
        return [{"name": name}, {"name": lead}] if leads else [{"name": name}]


@st.composite
def replicas(draw: st.DrawFn) -> tuple[Object, dict[str, Any]]:
    """Draw a JobSet and a policy that fits its labels."""
    drawing = _Drawing(draw)
    groups = [drawing.composite(1, Shape()) for _ in range(draw(st.integers(1, 2)))]
    return a_jobset(*drawing.entries), {"workload": {"groups": groups}}

"""A Workload of the user's own, which takes the place of the one that Muster would make for an owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muster.objects.meta import ObjectRef
from muster.objects.resources import SchedulingApi
from muster.objects.scheduling import CompositePodGroupTemplate, PodGroupTemplate, Workload
from muster.policy.group_labels import is_musters
from muster.policy.model import GroupingFailure, NoOp
from muster.policy.owners import known_kind_of, workload_name
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.tree.groups import Group

NEEDED_BY_COMPOSITES = "CompositePodGroup (Kubernetes 1.37, scheduling.k8s.io/v1alpha3, its feature gate)"


def own_workload(
    owner: OwnerObject, workloads: Iterable[Workload]
) -> Workload | GroupingFailure | NoOp | None:
    """Return the Workload a user made for the owner; a failure for two, a NoOp for the Job controller's."""
    root, kind = owner.ref, known_kind_of(owner)
    by_name: dict[str, Workload] = {}
    for workload in workloads:
        named = workload.spec.controller_ref
        names_owner = (named.api_group, named.kind, named.name) == (kind.resource.group, root.kind, root.name)
        if not names_owner or is_musters(workload.metadata.labels):
            continue
        if not kind.is_job or not _made_by_job_controller(workload, root):
            by_name[workload.metadata.name] = workload
        elif workload.metadata.name == workload_name(owner):
            return NoOp(
                Reason.UPSTREAM_GROUPS, f"Workload {workload.metadata.name} was made by the Job controller"
            )
    if len(by_name) > 1:
        first, *others = sorted(by_name)
        names = f"{first} and {others[0]}" if not others[1:] else f"{first} and {len(others)} others"
        return GroupingFailure(
            Reason.WORKLOAD_DOES_NOT_FIT, f"Workloads {names} have controllerRef {root.kind} {root.name}"
        )
    return next(iter(by_name.values()), None)


def own_tree(own: Workload, tree: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return the groups that the labels name, each as its template in the user's Workload makes it.

    A group has the template of its name. If there is one group and one template, and no composite, they
    belong together whatever the template is called: `basic: {}` then opts a Job out (KEP-5547). A group
    without a template stays as it is.
    """
    templates = _leaf_templates(own)
    if len(templates) == len(tree) == 1 and not own.composite:
        return tuple(map(_as_template_says, tree, templates.values()))
    return tuple(
        _as_template_says(group, templates[group.name]) if group.name in templates else group
        for group in tree
    )


def misfit(own: Workload, tree: tuple[Group, ...], api: SchedulingApi) -> GroupingFailure | None:
    """Return a failure if a user's Workload lacks a template for a group, or its kinds are not served."""
    templates = _leaf_templates(own)
    name = own.metadata.name
    missing = [group.name for group in tree if group.template_name not in templates]
    if missing:
        return GroupingFailure(
            Reason.WORKLOAD_DOES_NOT_FIT,
            f"Workload {name} has no template for {', '.join(missing)}, which the group labels name",
        )
    if own.composite and not api.composites:
        message = f"Workload {name} has groups of groups, which need {NEEDED_BY_COMPOSITES}"
        return GroupingFailure(Reason.API_NOT_SERVED, message)
    return None


def _leaf_templates(own: Workload) -> dict[str, PodGroupTemplate]:
    return {
        template.name: template
        for template, _ in own.hierarchy()
        if not isinstance(template, CompositePodGroupTemplate)
    }


def _as_template_says(group: Group, template: PodGroupTemplate) -> Group:
    gang = template.scheduling_policy.gang
    return replace(
        group,
        gang=gang is not None,
        pinned=None if gang is None else gang.min_count,
        settings=template.settings,
        other_template="" if template.name == group.name else template.name,
    )


def _made_by_job_controller(workload: Workload, root: ObjectRef) -> bool:
    """Whether its template is named `<job>-pgt-0` (pkg/controller/job/job_scheduling_manager.go, v1.37.1).

    Under another name than this Job's it was made for an earlier Job, whose deletion left it behind.
    """
    return [template.name for template in workload.spec.pod_group_templates] == [f"{root.name}-pgt-0"]

"""Manifests of Workloads, PodGroups, CompositePodGroups, fallback PodGroups and Events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from muster.objects.meta import ObjectRef, ref_of, time_text
from muster.objects.pods import Pod
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS, WORKLOADS, Resource
from muster.objects.scheduling import CompositePodGroupTemplate, PodGroupTemplate, SchedulingPolicy, Workload
from muster.policy.group_labels import GANG, MANAGED_BY, MUSTER, OWNER_UID
from muster.policy.model import Action, GroupingFailure, Verb
from muster.policy.owners.kind import NEVER
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnedGroup, ResolvedOwner
from muster.policy.sources.source import DEFAULT, policy_annotations
from muster.policy.tree.groups import Group

LABEL_VALUE_LIMIT = 63
WORKLOAD_LABEL = "muster.dev/workload"
FALLBACK = "muster.dev/fallback"
"""Annotation of a fallback PodGroup: `<reason>: <message>`, why there is no gang of that name."""

CLUSTER_SCOPED_EVENTS = "default"
"""Where Events on objects without a namespace go (client-go/tools/record/event.go, Kubernetes v1.37.1)."""

PLAIN_GROUPS = "muster.dev/groups"
"""Annotation of a PodGroup: how many its owner has, if each is a gang that needs all its pods, as asked for.

Nothing else about the owner can then change what its conditions say once all these are placed.
"""

_MESSAGE_LIMIT = 1024
"""The most characters of an Event's message, and of the annotation of a fallback PodGroup."""


def create_workload(resolved: ResolvedOwner) -> Action:
    """Create the Workload of an owner, with one template for each group.

    The API refuses a Workload whose templates differ in priority class (pkg/apis/scheduling/validation).
    """
    root = resolved.root
    classes = {pod_set.priority.name for pod_set in resolved.pod_sets.pod_sets if pod_set.labels}
    group = root.api_version.rpartition("/")[0]
    spec = {
        "controllerRef": {"apiGroup": group, "kind": root.kind, "name": root.name},
        **_templates(resolved.tree, classes.pop() if len(classes) == 1 else ""),
    }
    body = _owned(root, resolved.pod_sets.workload_name, spec, WORKLOADS)
    if resolved.policy != DEFAULT:
        body["metadata"]["annotations"] = policy_annotations(resolved.policy)
    return _create(body)


def create_group(
    root: ObjectRef,
    workload: Workload,
    name: str,
    template: PodGroupTemplate,
    *,
    policy: SchedulingPolicy,
    priority_class: str,
    parent: str,
) -> Action:
    """Create one PodGroup or CompositePodGroup of a stored Workload."""
    resource = COMPOSITE_POD_GROUPS if isinstance(template, CompositePodGroupTemplate) else POD_GROUPS
    spec: dict[str, Any] = {
        "workloadRef": {"templateName": template.name, "workloadName": workload.metadata.name},
        "schedulingPolicy": policy.model_dump(by_alias=True, exclude_unset=True),
        **template.settings,
    }
    if parent:
        spec["parentCompositePodGroupName"] = parent
    if priority_class:
        spec["priorityClassName"] = priority_class
    body = _owned(root, name, spec, resource)
    body["metadata"]["labels"][WORKLOAD_LABEL] = label_value(workload.metadata.name)
    body["metadata"]["ownerReferences"].append(_reference(workload.ref))
    return _create(body)


def fallback_for_pods(
    root: ObjectRef, pods: Iterable[tuple[Pod, GroupingFailure]], event: Action
) -> Iterator[Action]:
    """Create the fallback PodGroups that stamped pods name; the Event for each that is refused."""
    for pod, failure in pods:
        never = pod.spec.preemption_policy == NEVER
        name, priority_class = pod.pod_group_name, pod.spec.priority_class_name
        group = _create_fallback(root, name, priority_class, failure, never=never)
        yield replace(group, if_refused=(event,))


def fallback_for_group(
    root: ObjectRef, one: OwnedGroup, failure: GroupingFailure, *, never_preempts: bool = False
) -> Action:
    """Create a fallback PodGroup in place of one PodGroup of an owner."""
    never = never_preempts or one.group.never_preempts_at(one.suffix)
    return _create_fallback(root, one.name, one.priority_class_name, failure, never=never)


def with_fallback(
    root: ObjectRef, creation: Action, pod_groups: Iterable[OwnedGroup], event: Action, *, hold: bool
) -> Action:
    """Return the creation of a group, with an Event and fallback PodGroups if the API server refuses it."""
    if hold:
        return replace(creation, if_refused=(event,))
    failure = GroupingFailure(Reason.REFUSED_BY_API, "{refusal}")
    never = creation.body is not None and creation.body["spec"].get("preemptionPolicy") == NEVER
    groups = [fallback_for_group(root, one, failure, never_preempts=never) for one in pod_groups]
    # The Event first: the same cause, such as a quota, may refuse the fallback PodGroup too.
    return replace(creation, if_refused=(event, *groups))


def with_number_of_groups(creation: Action, number: int) -> Action:
    """Return the creation of a PodGroup with the annotation PLAIN_GROUPS."""
    body = dict(creation.body or {})
    body["metadata"] = {**body["metadata"], "annotations": {PLAIN_GROUPS: str(number)}}
    return replace(creation, body=body)


def why_no_gang(reason: str, message: str) -> dict[str, str]:
    """Return the annotation FALLBACK with a reason and a message, of 1,024 characters at most."""
    return {FALLBACK: f"{reason}: {message}"[:_MESSAGE_LIMIT]}


def create_gathered_group(
    target: ObjectRef, spec: Mapping[str, Any], annotations: Mapping[str, str], owner: ObjectRef | None
) -> Action:
    """Create the PodGroup of a gang without Workload; it ends with `owner`, if that is named."""
    metadata: dict[str, Any] = {
        "name": target.name,
        "namespace": target.namespace,
        "labels": {MANAGED_BY: MUSTER, GANG: target.name},
        "annotations": annotations,
    }
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner, controller=True)]
    return _create(
        {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "metadata": metadata, "spec": spec}
    )


def spec_of_gang(group: Group, min_count: int) -> dict[str, Any]:
    """Return the spec of the PodGroup of a group without Workload; its minCount if the group is a gang."""
    spec = _template(group, group.priority_class_name)
    del spec["name"]
    if group.gang:
        spec["schedulingPolicy"] = {"gang": {"minCount": min_count}}
    return spec


def spec_of_fallback(priority_class: str, *, never: bool) -> dict[str, Any]:
    """Return the spec of a basic PodGroup, whose pods are scheduled one by one in place of a gang."""
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if never:
        spec["preemptionPolicy"] = NEVER
    return spec


def event_of_refusal(about: ObjectRef, component: str, now: datetime) -> Action:
    """Return the Event for an `if_refused`, with the API server's message."""
    return create_event(about, component, Reason.REFUSED_BY_API, "{refusal}", now)


def create_event(
    about: ObjectRef, component: str, reason: str, message: str, now: datetime, *, warning: bool = True
) -> Action:
    """Create a core/v1 Event about an object; a repeat has the same name."""
    timestamp = time_text(now)
    body = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": _event_name(about.name, about.uid, component, reason, message),
            "namespace": about.namespace or CLUSTER_SCOPED_EVENTS,
        },
        "involvedObject": _reference(about, namespace=about.namespace),
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message[:_MESSAGE_LIMIT],
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
    }
    return replace(_create(body), optional=True)


def quoting(action: Action, refusal: str) -> Action:
    """Return the action with the API server's message in place of `{refusal}`; an Event gets a new name."""
    body = json.loads(json.dumps(action.body).replace("{refusal}", json.dumps(refusal)[1:-1]))
    if action.target.kind != EVENTS.kind:
        annotations = body["metadata"].get("annotations", {})
        if FALLBACK in annotations:
            annotations[FALLBACK] = annotations[FALLBACK][:_MESSAGE_LIMIT]
        return replace(action, body=body)
    body["message"] = body["message"][:_MESSAGE_LIMIT]
    about, component = body["involvedObject"], body["source"]["component"]
    name = _event_name(about["name"], about["uid"], component, body["reason"], body["message"])
    body["metadata"]["name"] = name
    return replace(action, target=replace(action.target, name=name), body=body)


def label_value(name: str) -> str:
    """Return a name as a label value: at most 63 characters, ending in a letter or digit."""
    return name[:LABEL_VALUE_LIMIT].rstrip("-._")


def _create_fallback(
    root: ObjectRef, name: str, priority_class: str, failure: GroupingFailure, *, never: bool
) -> Action:
    """Create a basic PodGroup without Workload of an owner."""
    body = _owned(root, name, spec_of_fallback(priority_class, never=never), POD_GROUPS)
    body["metadata"]["annotations"] = why_no_gang(failure.reason, failure.message)
    return _create(body)


def _templates(groups: tuple[Group, ...], priority_class: str) -> dict[str, Any]:
    """Return the two template lists of one level of a Workload, without empty ones."""
    leaves = [_template(group, priority_class) for group in groups if not group.children]
    composites = [_template(group, priority_class) for group in groups if group.children]
    lists = {"podGroupTemplates": leaves, "compositePodGroupTemplates": composites}
    return {name: templates for name, templates in lists.items() if templates}


def _template(group: Group, priority_class: str) -> dict[str, Any]:
    """Return the template of a group, with all settings that its PodGroups copy.

    A group without the preemptionPolicy of its class is refused (plugin/pkg/admission/priority, v1.37.1).
    """
    count = "minGroupCount" if group.children else "minCount"
    template: dict[str, Any] = {
        "name": group.name,
        "schedulingPolicy": {"gang": {count: group.template_min_count}} if group.gang else {"basic": {}},
    }
    if group.disruption_mode is not None:
        template["disruptionMode"] = group.disruption_mode
    if group.never_preempts:
        template["preemptionPolicy"] = NEVER
    template |= group.settings
    if priority_class:
        template["priorityClassName"] = priority_class
    return template | _templates(group.children, priority_class)


def _owned(root: ObjectRef, name: str, spec: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """Return an object of Muster, controlled by the owner; `blockOwnerDeletion` its role does not allow."""
    controller = {**_reference(root), "controller": True}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": root.namespace,
            "labels": {MANAGED_BY: MUSTER, OWNER_UID: root.uid},
            "ownerReferences": [controller],
        },
        "spec": spec,
    }


def _reference(ref: ObjectRef, **more: Any) -> dict[str, Any]:
    return {"apiVersion": ref.api_version, "kind": ref.kind, **more, "name": ref.name, "uid": ref.uid}


def _create(body: Mapping[str, Any]) -> Action:
    return Action(Verb.CREATE, ref_of(body), body)


def _event_name(about: str, uid: str, component: str, reason: str, message: str) -> str:
    text = f"{uid}/{component}/{reason}/{message}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{about[:200].rstrip('-.')}.{digest}"

"""The objects Muster creates, as JSON bodies in the shape of scheduling.k8s.io/v1beta1."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from muster.objects.meta import ObjectRef
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS, WORKLOADS, Resource
from muster.objects.scheduling import (
    CompositePodGroupTemplate,
    PodGroupTemplate,
    SchedulingPolicy,
    Workload,
)
from muster.policy.groups import GivenUp, Group
from muster.policy.model import Action, Verb
from muster.policy.names import label_value
from muster.policy.priorities import NEVER

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
OWNER_UID = "muster.dev/owner-uid"
WORKLOAD_LABEL = "muster.dev/workload"
STAND_IN = "muster.dev/stand-in"
"""Annotation of a stand-in: `<reason>: <message>`, why there is no gang of that name."""

CLUSTER_SCOPED_EVENTS = "default"
"""Where Events on objects without a namespace go (client-go/tools/record/event.go, Kubernetes v1.37.1)."""

_EVENT_MESSAGE_LIMIT = 1024


def create_workload(
    root: ObjectRef, name: str, tree: tuple[Group, ...], annotations: Mapping[str, str]
) -> Action:
    """The Workload of an owner: one template per group.

    A priority class stands in the templates only where all groups share it: the API refuses a Workload whose
    templates differ (pkg/apis/scheduling/validation, Kubernetes v1.37.1).

    Args:
        root: the owner.
        name: of the Workload.
        tree: its groups.
        annotations: of the Workload.
    """
    sets = (pod_set for group in tree for leaf in group.leaves() for pod_set in leaf.pod_sets)
    classes = {pod_set.template.spec.priority_class_name for pod_set in sets}
    shared_class = classes.pop() if len(classes) == 1 else ""
    body: dict[str, Any] = {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": name,
            "namespace": root.namespace,
            "labels": _labels(root),
            "ownerReferences": [_controller(root)],
        },
        "spec": {
            "controllerRef": {
                "apiGroup": root.api_version.rpartition("/")[0],
                "kind": root.kind,
                "name": root.name,
            },
            **_templates(tree, shared_class),
        },
    }
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
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
    """One PodGroup or CompositePodGroup of a stored Workload.

    Args:
        root: the owner.
        workload: as it is stored.
        name: of the group.
        template: of the group; a composite one makes a CompositePodGroup.
        policy: the template's, with the minCount this one group needs.
        priority_class: the class of its pods.
        parent: the name of the CompositePodGroup above it; "" for a root.
    """
    resource = COMPOSITE_POD_GROUPS if isinstance(template, CompositePodGroupTemplate) else POD_GROUPS
    spec: dict[str, Any] = {
        "workloadRef": {"templateName": template.name, "workloadName": workload.metadata.name},
        "schedulingPolicy": policy_body(policy),
        **template.settings,
    }
    if parent:
        spec["parentCompositePodGroupName"] = parent
    if priority_class:
        spec["priorityClassName"] = priority_class
    body = _pod_group(root, name, spec, resource)
    body["metadata"]["labels"][WORKLOAD_LABEL] = label_value(workload.metadata.name)
    owner_of_template = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "name": workload.metadata.name,
        "uid": workload.metadata.uid,
    }
    body["metadata"]["ownerReferences"].append(owner_of_template)
    return _create(body)


def create_stand_in(
    root: ObjectRef, name: str, priority_class: str, why: GivenUp, *, never_preempts: bool = False
) -> Action:
    """A basic PodGroup without Workload: its pods run, one by one, where a gang cannot be had.

    Args:
        root: the owner.
        name: of the group.
        priority_class: the class of its pods.
        why: there is no gang.
        never_preempts: whether that class says so; see `_template`.
    """
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if never_preempts:
        spec["preemptionPolicy"] = NEVER
    body = _pod_group(root, name, spec)
    body["metadata"]["annotations"] = {STAND_IN: f"{why.reason}: {why.message}"}
    return _create(body)


def create_event(
    about: ObjectRef, *, component: str, warning: bool, reason: str, message: str, now: datetime
) -> Action:
    """A core/v1 Event on an object. Its name is fixed by what it says, so a second delivery adds nothing."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": _event_name(about.name, about.uid, component, reason, message),
            "namespace": about.namespace or CLUSTER_SCOPED_EVENTS,
        },
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message[:_EVENT_MESSAGE_LIMIT],
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    return Action(Verb.CREATE, _ref(body), body, optional=True)


def quoting(action: Action, refusal: str) -> Action:
    """The action with the server's words where its texts say `{refusal}`; an Event is named after them."""
    body = json.loads(json.dumps(action.body).replace("{refusal}", json.dumps(refusal)[1:-1]))
    if action.target.kind != EVENTS.kind:
        return replace(action, body=body)
    about, component = body["involvedObject"], body["source"]["component"]
    name = _event_name(about["name"], about["uid"], component, body["reason"], body["message"])
    body["metadata"]["name"] = name
    return replace(action, target=replace(action.target, name=name), body=body)


def is_musters(labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels was made by Muster."""
    return labels.get(MANAGED_BY) == MUSTER


def belongs_to(labels: Mapping[str, str], owner_uid: str) -> bool:
    """Whether Muster made an object with these labels for the owner of that UID."""
    return is_musters(labels) and labels.get(OWNER_UID) == owner_uid


def policy_body(policy: SchedulingPolicy) -> dict[str, Any]:
    """A scheduling policy as the API spells it; a composite's gang has minGroupCount, never minCount."""
    if policy.gang is None:
        return {"basic": {}}
    if policy.gang.min_group_count is not None:
        return {"gang": {"minGroupCount": policy.gang.min_group_count}}
    return {"gang": {"minCount": policy.gang.min_count}}


def _templates(groups: tuple[Group, ...], priority_class: str) -> dict[str, Any]:
    """Both lists of templates of one level, as far as they are not empty."""
    leaves = [_template(group, priority_class) for group in groups if not group.children]
    composites = [_template(group, priority_class) for group in groups if group.children]
    lists = {"podGroupTemplates": leaves, "compositePodGroupTemplates": composites}
    return {name: templates for name, templates in lists.items() if templates}


def _template(group: Group, priority_class: str) -> dict[str, Any]:
    """The template of a group, with all that its PodGroups take from it.

    With the gate PodGroupPreemptionPolicy a group without a preemptionPolicy gets the default one and is then
    refused if its class says another (plugin/pkg/admission/priority, Kubernetes v1.37.1, seen).
    """
    count = "minGroupCount" if group.children else "minCount"
    policy = {"gang": {count: group.template_min_count}} if group.gang else {"basic": {}}
    preemption = {"preemptionPolicy": NEVER} if group.never_preempts else {}
    template: dict[str, Any] = {
        "name": group.name,
        "schedulingPolicy": policy,
        **preemption,
        **group.settings,
    }
    if priority_class:
        template["priorityClassName"] = priority_class
    return template | _templates(group.children, priority_class)


def _pod_group(
    root: ObjectRef, name: str, spec: dict[str, Any], resource: Resource = POD_GROUPS
) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": root.namespace,
            "labels": _labels(root),
            "ownerReferences": [_controller(root)],
        },
        "spec": spec,
    }


def _labels(root: ObjectRef) -> dict[str, str]:
    return {MANAGED_BY: MUSTER, OWNER_UID: root.uid}


def _controller(root: ObjectRef) -> dict[str, Any]:
    return {
        "apiVersion": root.api_version,
        "kind": root.kind,
        "name": root.name,
        "uid": root.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _create(body: dict[str, Any]) -> Action:
    return Action(Verb.CREATE, _ref(body), body)


def _event_name(about: str, uid: str, component: str, reason: str, message: str) -> str:
    text = f"{uid}/{component}/{reason}/{message}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{about[:200].rstrip('-.')}.{digest}"


def _ref(body: Mapping[str, Any]) -> ObjectRef:
    metadata = body["metadata"]
    return ObjectRef(body["apiVersion"], body["kind"], metadata["namespace"], metadata["name"])

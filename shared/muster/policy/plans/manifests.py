"""Manifests of PodGroups, CompositePodGroups, fallback PodGroups and Events (scheduling.k8s.io/v1beta1)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from muster.objects.meta import ObjectRef
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS, Resource
from muster.objects.scheduling import CompositePodGroupTemplate, PodGroupTemplate, SchedulingPolicy, Workload
from muster.objects.text import printable
from muster.policy.group_labels import controller_reference, owner_labels
from muster.policy.model import Action, GroupingFailure, Verb
from muster.policy.owners.kind import NEVER

LABEL_VALUE_LIMIT = 63
WORKLOAD_LABEL = "muster.dev/workload"
FALLBACK = "muster.dev/stand-in"
"""Annotation of a fallback PodGroup: `<reason>: <message>`, why there is no gang of that name."""

CLUSTER_SCOPED_EVENTS = "default"
"""Where Events on objects without a namespace go (client-go/tools/record/event.go, Kubernetes v1.37.1)."""

_MESSAGE_LIMIT = 1024
"""The most characters of an Event's message, and of the annotation of a fallback PodGroup."""


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
    """Create one PodGroup or CompositePodGroup of a stored Workload.

    Args:
        root: the owner.
        workload: the Workload as it is stored.
        name: the name of the group.
        template: the template of the group; a composite one makes a CompositePodGroup.
        policy: the template's, with the minCount that this group needs.
        priority_class: the priority class of its pods.
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
    return create(body)


def create_fallback_group(
    root: ObjectRef, name: str, priority_class: str, failure: GroupingFailure, *, never_preempts: bool = False
) -> Action:
    """Create a basic PodGroup without Workload, whose pods are scheduled one by one in place of a gang.

    Args:
        root: the owner.
        name: the name of the group.
        priority_class: the priority class of its pods.
        failure: why there is no gang.
        never_preempts: whether that class has preemptionPolicy Never, which the group then has to repeat.
    """
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if never_preempts:
        spec["preemptionPolicy"] = NEVER
    body = _pod_group(root, name, spec)
    body["metadata"]["annotations"] = why_no_gang(failure.reason, failure.message)
    return create(body)


def why_no_gang(reason: str, message: str) -> dict[str, str]:
    """Return the annotation FALLBACK with a reason and a message, of 1,024 characters at most."""
    return {FALLBACK: printable(f"{reason}: {message}", _MESSAGE_LIMIT)}


def create_event(
    about: ObjectRef, *, component: str, warning: bool, reason: str, message: str, now: datetime
) -> Action:
    """Create a core/v1 Event about an object; a repeat has the same name."""
    timestamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
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
        "message": printable(message, _MESSAGE_LIMIT),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
    }
    return Action(Verb.CREATE, _ref(body), body, optional=True)


def quoting(action: Action, refusal: str) -> Action:
    """Return the action with the API server's message in place of `{refusal}`; an Event gets a new name.

    The messages of Events, and the annotations of fallback PodGroups, are cut again.
    """
    body = json.loads(json.dumps(action.body).replace("{refusal}", json.dumps(refusal)[1:-1]))
    if action.target.kind != EVENTS.kind:
        annotations = body["metadata"].get("annotations", {})
        if FALLBACK in annotations:
            annotations[FALLBACK] = printable(annotations[FALLBACK], _MESSAGE_LIMIT)
        return replace(action, body=body)
    body["message"] = printable(body["message"], _MESSAGE_LIMIT)
    about, component = body["involvedObject"], body["source"]["component"]
    name = _event_name(about["name"], about["uid"], component, body["reason"], body["message"])
    body["metadata"]["name"] = name
    return replace(action, target=replace(action.target, name=name), body=body)


def label_value(name: str) -> str:
    """Return a name as a label value: at most 63 characters, ending in a letter or digit.

    A Workload's name may be longer (a Job's 63 characters and a hash).
    """
    return name[:LABEL_VALUE_LIMIT].rstrip("-._")


def policy_body(policy: SchedulingPolicy) -> dict[str, Any]:
    """Return a scheduling policy as the API spells it; a composite's gang has minGroupCount only."""
    if policy.gang is None:
        return {"basic": {}}
    if policy.gang.min_group_count is not None:
        return {"gang": {"minGroupCount": policy.gang.min_group_count}}
    return {"gang": {"minCount": policy.gang.min_count}}


def _pod_group(
    root: ObjectRef, name: str, spec: dict[str, Any], resource: Resource = POD_GROUPS
) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": root.namespace,
            "labels": owner_labels(root),
            "ownerReferences": [controller_reference(root)],
        },
        "spec": spec,
    }


def create(body: dict[str, Any]) -> Action:
    """Return the action that creates an object."""
    return Action(Verb.CREATE, _ref(body), body)


def _event_name(about: str, uid: str, component: str, reason: str, message: str) -> str:
    text = f"{uid}/{component}/{reason}/{message}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{about[:200].rstrip('-.')}.{digest}"


def _ref(body: Mapping[str, Any]) -> ObjectRef:
    metadata = body["metadata"]
    return ObjectRef(body["apiVersion"], body["kind"], metadata["namespace"], metadata["name"])

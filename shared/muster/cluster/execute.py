"""Executing a plan: one request per action, each safe to repeat after a retry."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace

from muster.cluster import errors
from muster.cluster.interface import Cluster
from muster.objects.meta import ObjectRef
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.policy import limits
from muster.policy.groups.manifests import quoting
from muster.policy.model import Action, Plan, Verb
from muster.policy.reasons import Reason

GATES_AT_ONCE = 4
"""Gates of one event that are removed at the same time: a gang waits for its last gate."""

_REFUSALS = (errors.Invalid, errors.Forbidden)
_GROUPS = frozenset({POD_GROUPS.kind, COMPOSITE_POD_GROUPS.kind})
_PARENT = "parentCompositePodGroupName"


def in_order(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry out the actions of a plan in order; returns the plan with those that succeeded.

    The error of a refused creation is raised after the others, unless the plan has something in its place.
    Beyond the limit of writes the plan is to be delivered again, with the reason WriteLimit.
    """
    execution = _Execution(cluster, manager)
    try:
        for action in plan.actions:
            execution.carry_out(action)
    except _WriteLimitReachedError:
        done, planned = tuple(execution.done), len(plan.actions)
        count = f"{len(done)} of {planned}" if planned > len(done) else str(len(done))
        message = f"{count} writes; the rest follows: {plan.message}"
        return replace(plan, reason=Reason.WRITE_LIMIT, message=message, actions=done, requeue=True)
    if execution.refusal is not None:
        raise execution.refusal
    return replace(plan, actions=tuple(execution.done))


def in_order_then(as_executed: Callable[[Plan], Plan]) -> Callable[[Cluster, Plan, str], Plan]:
    """Return `in_order`, after which a function tells what became of the plan: its reason and reply."""
    return lambda cluster, plan, manager: as_executed(in_order(cluster, plan, manager))


class _WriteLimitReachedError(Exception):
    """The plan has more writes than one event may have."""


class _Execution:
    """Carries out the actions of one plan.

    After a refused creation (403, or 422 and the like) these requests are left out: creations that would be
    refused for the same cause, those below the refused CompositePodGroup, and deletions, since a replacement
    may be missing. After a refused update only its `if_refused` follows.
    """

    def __init__(self, cluster: Cluster, manager: str) -> None:
        self.done: list[Action] = []
        self.refusal: errors.ClusterError | None = None
        self._cluster = cluster
        self._manager = manager
        self._created: set[ObjectRef] = set()
        self._refused: dict[str, errors.ClusterError] = {}
        self._refused_composites: set[str] = set()
        self._update_refused = False

    def carry_out(self, action: Action) -> None:
        """Carry out an action, or what its plan has in place of it if the API server refuses it."""
        creates = action.verb is Verb.CREATE
        if creates and ((action.body or {}).get("spec") or {}).get(_PARENT) in self._refused_composites:
            self._leave_out_below(action)
            return
        needless = action.target in self._created if creates else action.verb is Verb.DELETE and self._refused
        if needless or self._update_refused:
            return
        known = self._refused.get(_cause_of(action)) if creates and self._refused else None
        error = known or self._write(action)
        if error is not None:
            self._in_place_of(action, error)

    def _write(self, action: Action) -> errors.ClusterError | None:
        """Make the request; returns the refusal of a creation, or of another action with `if_refused`."""
        if len(self.done) + len(self._refused) >= limits.WRITES:
            raise _WriteLimitReachedError
        creates, expected_new = action.verb is Verb.CREATE, self._cluster.expects_new
        try:
            self._cluster.write(action, self._manager)
        except errors.ClusterError as error:
            if action.optional:
                self._created.add(action.target)
                return None
            refused = isinstance(error, _REFUSALS) and not isinstance(error, errors.Terminating)
            if refused and creates and expected_new:  # a quota also refuses what exists
                raise errors.Conflict(f"{action.target}: {error.message}") from error
            if not (refused and (creates or action.if_refused)):
                raise
            self._refused[_cause_of(action)] = error
            return error
        self._created.add(action.target)
        self.done.append(action)
        return None

    def _in_place_of(self, action: Action, error: errors.ClusterError) -> None:
        """Carry out the actions in place of a refused one; an earlier delivery may have done so already."""
        self._leave_out_below(action)
        never = isinstance(error, errors.Invalid)
        if action.instead is not None:
            fallbacks = action.instead(error.message, never)
        else:
            fallbacks = (quoting(fallback, error.message) for fallback in action.if_refused)
        if not action.if_refused and not (action.instead is not None and never):
            self.refusal = self.refusal or error
        for fallback in fallbacks:
            with suppress(errors.AlreadyExists):
                self.carry_out(fallback)
        self._update_refused = action.verb is not Verb.CREATE

    def _leave_out_below(self, action: Action) -> None:
        if action.target.kind == COMPOSITE_POD_GROUPS.kind:
            self._refused_composites.add(action.target.name)


def _cause_of(action: Action) -> str:
    """Return the cause for which a creation may be refused: groups of equal fields have the same."""
    if action.target.kind not in _GROUPS:
        return str(action.target)
    spec = (action.body or {}).get("spec") or {}
    shared = {name: value for name, value in spec.items() if name != _PARENT}
    return json.dumps([action.target.kind, shared], sort_keys=True)


def in_parallel(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry out every action of a plan, also after failures of others; an object that is gone is no error."""
    with ThreadPoolExecutor(GATES_AT_ONCE) as threads:
        # Each with a copy of the context, by which its span belongs to that of the event.
        tries = [
            threads.submit(copy_context().run, in_order, cluster, replace(plan, actions=(action,)), manager)
            for action in plan.actions
        ]
    done: list[Action] = []
    failure: errors.ClusterError | None = None
    for tried in tries:
        try:
            done += tried.result().actions
        except errors.ClusterError as error:
            # Of an Invalid with this text a new pod of another UID has the name.
            if not (isinstance(error, errors.Gone) or "metadata.uid" in error.message):
                failure = failure or error
    if failure is not None:
        raise failure
    return replace(plan, actions=tuple(done))

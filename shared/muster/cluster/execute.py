"""Executing a plan: one request per action, each safe to repeat after a retry."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

from muster.cluster import errors
from muster.cluster.interface import Cluster
from muster.objects.meta import ObjectRef
from muster.policy.limits import setting
from muster.policy.model import Action, Plan, Verb
from muster.policy.plans.manifests import quoting
from muster.policy.reasons import Reason

_REFUSALS = (errors.Invalid, errors.Forbidden)


def in_order(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry out the actions of a plan in order, up to the first failure or the limit of writes.

    A creation that the API server refuses does not keep the other objects of the plan from being created.

    Returns:
        The plan with the actions that succeeded: those of `if_refused` in place of a refused action. Beyond
        the limit it is to be delivered again, with the reason WriteLimit.

    Raises:
        ClusterError: an action failed; those before it are done, and the event must be delivered again. If
            creations were refused, the first refusal after all actions were tried.
    """
    done: list[Action] = []
    refusals: list[errors.ClusterError] = []
    created: set[ObjectRef] = set()
    for action in plan.actions:
        if action.verb is Verb.CREATE and action.target in created:
            continue  # created already in place of a refused action
        if len(done) + len(refusals) >= cluster.limits.writes:
            if refusals:
                break
            count = f"{len(done)} of {len(plan.actions)} writes ({setting('writes')})"
            message = f"{count}; the rest follows: {plan.message}"
            return replace(
                plan, reason=Reason.WRITE_LIMIT, message=message, actions=tuple(done), requeue=True
            )
        try:
            written = _carry_out(cluster, action, manager)
        except _REFUSALS as error:
            if action.verb is not Verb.CREATE:
                raise
            refusals.append(error)
            continue
        done += written
        created.update(action.target for action in written)
    if refusals:
        raise refusals[0]
    return replace(plan, actions=tuple(done))


def in_parallel(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry out every action of a plan, some at the same time, also after failures of others.

    An object that is gone is no error.

    Raises:
        ClusterError: the first failure, after all actions were tried.
    """
    with ThreadPoolExecutor(cluster.limits.gates_at_once) as threads:
        # Each with a copy of the context, by which its span belongs to that of the event.
        tries = [
            threads.submit(copy_context().run, _carry_out, cluster, action, manager)
            for action in plan.actions
        ]
    done: list[Action] = []
    failures: list[errors.ClusterError] = []
    for tried in tries:
        try:
            done += tried.result()
        except errors.Gone:
            continue
        except errors.Invalid as error:
            if "metadata.uid" not in error.message:  # else a new pod of another UID has the name
                failures.append(error)
        except errors.ClusterError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return replace(plan, actions=tuple(done))


def _carry_out(cluster: Cluster, action: Action, manager: str) -> list[Action]:
    """Carry out an action, or those of its `if_refused` if the API server refuses it."""
    try:
        cluster.write(action, manager)
    except errors.ClusterError as error:
        if action.optional:
            return []
        if not isinstance(error, _REFUSALS):
            raise
        if action.instead is not None:
            return _carry_out_again(cluster, action.instead(error.message), manager)
        if not action.if_refused:
            raise
        fallbacks = (quoting(fallback, error.message) for fallback in action.if_refused)
        return _carry_out_again(cluster, fallbacks, manager)
    return [action]


def _carry_out_again(cluster: Cluster, actions: Iterable[Action], manager: str) -> list[Action]:
    """Carry out actions that an earlier delivery may have carried out already.

    Raises:
        ClusterError: the first refusal, after all actions were tried; or another failure.
    """
    done: list[Action] = []
    refusals: list[errors.ClusterError] = []
    for action in actions:
        try:
            done += _carry_out(cluster, action, manager)
        except errors.AlreadyExists:
            continue
        except _REFUSALS as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]
    return done

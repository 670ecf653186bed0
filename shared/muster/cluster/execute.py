"""Executing a plan: one request per action, each safe to repeat after a retry."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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

    Returns:
        The plan with the actions that succeeded: those of `if_refused` in place of a refused action. Beyond
        the limit it is to be delivered again, with the reason WriteLimit.

    Raises:
        ClusterError: an action failed; those before it are done, and the event must be delivered again.
    """
    done: list[Action] = []
    created: set[ObjectRef] = set()
    for action in plan.actions:
        if action.verb is Verb.CREATE and action.target in created:
            continue  # created already in place of a refused action
        if len(done) >= cluster.limits.writes:
            count = f"{len(done)} of {len(plan.actions)} writes ({setting('writes')})"
            message = f"{count}; the rest follows: {plan.message}"
            return replace(
                plan, reason=Reason.WRITE_LIMIT, message=message, actions=tuple(done), requeue=True
            )
        written = _carry_out(cluster, action, manager)
        done += written
        created.update(action.target for action in written)
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
    """Carry out an action, or those of its `if_refused`, which an earlier delivery may have done already."""
    try:
        cluster.write(action, manager)
    except errors.ClusterError as error:
        if action.optional:
            return []
        if not (action.if_refused and isinstance(error, _REFUSALS)):
            raise
        done: list[Action] = []
        for fallback in action.if_refused:
            with suppress(errors.AlreadyExists):
                done += _carry_out(cluster, quoting(fallback, error.message), manager)
        return done
    return [action]

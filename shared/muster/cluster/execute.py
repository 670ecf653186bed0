"""Executing a plan: one request per action, each safe to repeat."""

from __future__ import annotations

from dataclasses import replace

from muster.cluster import errors
from muster.cluster.interface import Cluster
from muster.objects.meta import ObjectRef
from muster.policy.model import Action, Plan, Verb
from muster.policy.plans.manifests import quoting

_REFUSALS = (errors.Invalid, errors.Forbidden)


def in_order(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry the actions out one after another; the first that fails ends it.

    Returns:
        The plan as it was carried out: a refused action is replaced by what was done instead.

    Raises:
        ClusterError: an action failed; those before it are done, and the event must be delivered again.
    """
    done: list[Action] = []
    made: set[ObjectRef] = set()
    for action in plan.actions:
        if action.verb is Verb.CREATE and action.target in made:
            continue  # in place of one that was refused
        written = _carry_out(cluster, action, manager)
        done += written
        made.update(one.target for one in written)
    return replace(plan, actions=tuple(done))


def each(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry every action out, whatever becomes of the others; an object that is gone is fine.

    Raises:
        ClusterError: the first failure, after all actions were tried.
    """
    done: list[Action] = []
    failures: list[errors.ClusterError] = []
    for action in plan.actions:
        try:
            done += _carry_out(cluster, action, manager)
        except errors.Gone:
            continue
        except errors.Invalid as error:
            if "metadata.uid" not in error.message:  # a pod of another UID has the name by now
                failures.append(error)
        except errors.ClusterError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return replace(plan, actions=tuple(done))


def _carry_out(cluster: Cluster, action: Action, manager: str) -> list[Action]:
    try:
        cluster.write(action, manager)
    except _REFUSALS as error:
        if action.optional:
            return []
        if not action.if_refused:
            raise
        instead = [quoting(one, error.message) for one in action.if_refused]
        return [written for one in instead for written in _carry_out_fallback(cluster, one, manager)]
    except errors.ClusterError:
        if not action.optional:
            raise
        return []
    return [action]


def _carry_out_fallback(cluster: Cluster, action: Action, manager: str) -> list[Action]:
    """Carry out the replacement of a refused action, which an earlier delivery may have done already."""
    try:
        return _carry_out(cluster, action, manager)
    except errors.AlreadyExists:
        return []

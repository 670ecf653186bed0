"""`muster explain`: whether an owner is a gang, what it waits for, its policy, groups and steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from muster.cli.advice import why_not_marked
from muster.cli.cluster import KubeconfigOptions, cluster_options, connected, namespace_option
from muster.cli.common import STDIN, BadInput, CommandError, echo_wrapped, errors_as_bad_input, path_of
from muster.cli.dry_run import DEFAULT_NAMESPACE, DryRunCluster, assume_cluster
from muster.cli.explain_gang import explain_gang
from muster.cli.health import Health, read_health
from muster.cluster.errors import ApiGone
from muster.cluster.interface import Cluster
from muster.cluster.observe import policy_sources as sources
from muster.cluster.observe.members import failed_create, read_members
from muster.cluster.observe.owner import read_owner
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef, ref_of
from muster.objects.text import counted
from muster.policy.group_labels import SINGLE
from muster.policy.model import NoOp, Plan
from muster.policy.owners import KINDS, kind_of
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerKind, OwnerPodSets, PodSet
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.runtime_labels import labels_of, labels_of_template, leaves
from muster.policy.sources.schema import GroupPolicy
from muster.policy.sources.source import DEFAULT, PolicySourceKind, resolve_policy
from muster.policy.status.conditions import Condition
from muster.policy.status.owner_status import owner_status
from muster.policy.tree.groups import Group
from muster.replay.plans import as_lines, decide
from muster.replay.snapshots import read_snapshots
from muster.runtime import steps

STEPS = (
    "mark_runtime",
    "create_workload",
    "create_pod_groups",
    "patch_pods",
    "resize_gang",
    "emit_conditions",
)
"""The steps that act on an owner, its runtime or its groups, in the order of the pipeline."""

NAMES_SHOWN = 4
"""Up to so many PodGroups of a template are listed by name; of more only the first and the last."""

_OWNERS = {name: kind for kind in KINDS for name in (kind.resource.kind.lower(), kind.resource.plural)}


@click.command("explain")
@click.argument(
    "targets",
    metavar="KIND/NAME | KIND NAME | FILE...",
    nargs=-1,
    required=True,
    shell_complete=lambda _ctx, _parameter, typed: _complete(typed),
)
@namespace_option("Namespace in the cluster; default: the context's.")
@click.option("-v", "--verbose", is_flag=True, help="Also print what each step would do.")
@cluster_options
def command(targets: tuple[str, ...], namespace: str, options: KubeconfigOptions, *, verbose: bool) -> None:
    """Explain whether an owner is a gang, what it waits for, which policy applies, and its groups.

    KIND/NAME is a trainjob, jobset or job of a cluster; or whatever controls pods with the label
    muster.dev/min-count, as statefulset/web, or their podgroup. A FILE of manifests, or - for standard input,
    is explained as if it were applied, every job and unused runtime in it, without any cluster: a runtime
    that the Trainer ships need not be in it. UIDs are not known then, so names of groups end in xxxxxxxx.
    Nothing is written.

    Exits with 1 if an owner does not exist, or if the groups of one in a file cannot be made.
    """
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    if all(map(_is_file, targets)):
        good = True
        with errors_as_bad_input():
            paths = list(map(path_of, targets))
            for number, (text, possible) in enumerate(_of_files(paths, namespace, now, verbose=verbose)):
                echo_wrapped(f"\n{text}" if number else text)
                good = good and possible
        if not good:
            raise SystemExit(1)
        return
    kind, name = named(targets)
    with connected(options, "explain") as cluster:
        place, reader = namespace or cluster.namespace, Versioned(cluster.client)
        if isinstance(kind, str):
            echo_wrapped(explain_gang(reader, kind, name, place, now, verbose=verbose))
            return
        resource = kind.resource
        ref = ObjectRef(resource.api_version, resource.kind, place, name)
        try:
            body = reader.get(resource, name, place)
        except ApiGone:
            raise CommandError(f"{cluster.client.url}: does not serve {resource.plural}") from None
        if body is None:
            cluster.require_namespace(place)
            raise CommandError(f"{cluster.client.url}: {ref} does not exist")
        echo_wrapped(explain(reader, ref, now, verbose=verbose)[0])


def _of_files(
    paths: Sequence[Path], namespace: str, now: datetime, *, verbose: bool
) -> Iterator[tuple[str, bool]]:
    """Yield the explanation of each owner in files; print what is assumed, and what cannot be explained."""
    assumed = assume_cluster(read_snapshots(paths)[0].objects, namespace or DEFAULT_NAMESPACE)
    if not (assumed.owners or assumed.faults):
        raise BadInput(f"{', '.join(map(str, paths))}: has no TrainJob, JobSet, Job or runtime")
    for note in assumed.notes:
        click.echo(f"muster: {note}", err=True)
    cluster = DryRunCluster(assumed.objects)
    for owner in assumed.owners:
        yield explain(cluster, ref_of(owner), now, verbose=verbose)
    for _, fault in assumed.faults:
        click.echo(f"muster: {fault}", err=True)
    if assumed.faults:
        raise SystemExit(BadInput.exit_code)


def _complete(typed: str) -> list[CompletionItem]:
    """Return the kinds that begin with a text, else have the shell complete files."""
    kinds = [f"{kind.resource.kind.lower()}/" for kind in KINDS]
    found = [CompletionItem(kind) for kind in kinds if kind.startswith(typed)]
    return found or [CompletionItem(typed, type="file")]


def named(targets: Sequence[str]) -> tuple[OwnerKind | str, str]:
    """Return kind and name of `KIND/NAME` or `KIND NAME`; a kind that is no owner is text in lowercase."""
    typed, _, name = "/".join(targets).partition("/")
    kind = typed.lower().partition(".")[0]
    if not (kind.isalpha() and name) or "/" in name:
        kinds = ", ".join(kind.resource.kind.lower() for kind in KINDS)
        raise BadInput(f"{' '.join(targets)}: is neither a file nor KIND/NAME with one of {kinds}")
    return _OWNERS.get(kind, kind), name


def _is_file(target: str) -> bool:
    return target == STDIN or Path(target).is_file()


def explain(cluster: Cluster, ref: ObjectRef, now: datetime, *, verbose: bool = False) -> tuple[str, bool]:
    """Return the explanation of an owner, with the verdict first, and whether its groups can be made.

    The cluster is a live one or a DryRunCluster; the UID may be empty.
    """
    live, resolved = read_owner(cluster, ref, classes=True)
    name = live.owner.ref if live.owner else ref
    health = None if isinstance(cluster, DryRunCluster) else read_health(cluster, ref.namespace)
    if isinstance(resolved, NoOp):
        lines = [f"{name}: no gang: {resolved.reason}: {resolved.message}"]
        lines += [f"  note: {note}" for note in why_not_marked(cluster, live, resolved)]
    else:
        conditions = _conditions_now(cluster, live, resolved, now)
        state = "suspended: " if resolved.suspended else ""
        lines = [f"{name}: {state}{_verdict(resolved, conditions)}"]
        lines += _below("now:", (_condition_line(live, condition) for condition in conditions))
    if health is not None and (health.missing or not health.found):
        lines.append(f"  note: {health}")
    lines += _policy_lines(cluster, live, resolved)
    if isinstance(resolved, ResolvedOwner):
        lines += _group_lines(resolved)
        missing = () if resolved.own else _missing_labels(resolved)
        lines += _below("labels to add or change in the job's manifest:", missing)
        lines += [f"  note: {note}" for note in _notes_on_groups(resolved)]
    if verbose:
        lines += _below("steps:", _step_lines(cluster, live, now, health))
    possible = isinstance(resolved, NoOp) or resolved.failure is None
    return "".join(f"{line}\n" for line in lines), possible


def _verdict(resolved: ResolvedOwner, conditions: Sequence[Condition]) -> str:
    """Return in a few words what an owner is, or waits for."""
    if resolved.failure is not None:
        return f"cannot be grouped: {resolved.failure.reason}: {resolved.failure.message}"
    if conditions:
        worst = next((one for one in conditions if not one.true), conditions[-1])
        return str(worst.reason) if worst.true else f"waits, {worst.reason}"
    leaves = [group for group in resolved.groups.values() if not group.children and group.has_pods]
    gangs = sum(len(group.sizes) for group in leaves if group.gang)
    basic = sum(len(group.sizes) for group in leaves if not group.gang)
    parts = counted(gangs, "gang"), counted(basic, "basic group")
    return " and ".join(part for part in parts if not part.startswith("0")) or "no group has pods"


def _below(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a heading and the lines below it; nothing if there are none."""
    for number, line in enumerate(lines):
        yield f"    {line}" if number else f"  {heading}\n    {line}"


def _policy_lines(cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner | NoOp) -> Iterator[str]:
    """Yield the policy that applies, those of lower precedence, and the locked fields."""
    policy = resolve_policy(live.sources, live.owner)
    where = policy.where
    if isinstance(resolved, ResolvedOwner):
        if resolved.own is not None:
            where = f"the owner's own Workload {resolved.own.metadata.name}"
        elif resolved.policy != DEFAULT:
            kept = " (as it was when the groups were created)" if resolved.policy.kept else ""
            where = f"{resolved.policy.where}{kept}"
    yield f"  policy: {where}"
    if live.owner is not None:
        written = sources.of_owner(cluster, live.owner, live.runner)
        unlocked = [source for source in written if source.kind != PolicySourceKind.LOCKED]
        yield from (f"          (not used: {source.where})" for source in unlocked[1:])
    if policy.locks is not None:
        yield f"  locked: {policy.locks.as_text()} ({policy.locks.where})"


def _group_lines(resolved: ResolvedOwner) -> Iterator[str]:
    failure = resolved.failure
    if failure is not None:
        if resolved.policy.holds:
            until = "until its groups can be made (onFailure: Hold); by its labels alone:"
            yield f"  its pods keep their gate {until}"
        else:
            names = "of the same names" if resolved.tree else "for the existing pods"
            yield f"  instead of these groups, fallback PodGroups {names}, in which the pods run one by one:"
    elif resolved.tree:
        yield "  groups:"
    for root in resolved.tree:
        yield from _tree_lines(root, resolved.pod_sets, "    ", "    ")


def _tree_lines(group: Group, pod_sets: OwnerPodSets, prefix: str, indent: str) -> Iterator[str]:
    yield f"{prefix}{group.name}: {_described(group)}"
    yield from (f"{indent}  {line}" for line in _object_names(group, pod_sets))
    for child in group.children:
        branch, below = ("└─ ", "   ") if child is group.children[-1] else ("├─ ", "│  ")
        yield from _tree_lines(child, pod_sets, f"{indent}{branch}", f"{indent}{below}")


def _described(group: Group) -> str:
    """Return the settings of a group as text: `gang of 2 of 3 groups, within one zone`."""
    count = group.child_groups if group.children else max([0, *group.sizes.values()])
    size = f"gang of {group.template_min_count} of" if group.gang else "basic,"
    parts = [f"{size} {counted(count, 'group' if group.children else 'pod')}"]
    if group.children and group.shape != SINGLE:
        blocks = f"block of {group.shape.size} completion indexes" if group.shape.size else ""
        parts.append(
            f"one per {' of each '.join(filter(None, (blocks, 'Job' if group.shape.per_job else '')))}"
        )
    settings = group.settings
    topology = (settings.get("schedulingConstraints") or {}).get("topology") or []
    parts += [f"within one {constraint['key']}" for constraint in topology]
    whole = "all" in (group.disruption_mode or {})
    if whole != group.gang:
        parts.append("disrupted as a whole" if whole else "disrupted one by one")
    if "preemptionPolicy" in settings:
        parts.append(f"preemption {settings['preemptionPolicy']}")
    if "resourceClaims" in settings:
        parts.append(f"shared claims {', '.join(claim['name'] for claim in settings['resourceClaims'])}")
    if group.other_template:
        parts.append(f"template {group.other_template}")
    if group.priority_class_name:
        parts.append(f"priority class {group.priority_class_name}")
    return ", ".join(parts)


def _object_names(group: Group, pod_sets: OwnerPodSets) -> list[str]:
    """Return the names of the PodGroups of a group with their pods, or of its CompositePodGroups."""
    if group.children:
        names = [pod_sets.pod_group_name(group.name, suffix) for suffix in group.instances]
        lines = [f"CompositePodGroup {name}" for name in names]
    else:
        lines = [
            f"PodGroup {pod_sets.pod_group_name(group.name, suffix)} ({counted(pods, 'pod')})"
            for suffix, pods in group.sizes.items()
        ]
    shortened = [*lines[:1], f"... {len(lines) - 2} more", *lines[-1:]]
    return lines if len(lines) <= NAMES_SHOWN else shortened


def _missing_labels(resolved: ResolvedOwner) -> Iterator[str]:
    """Yield path, name and value of each label that the policy asks for and a pod template lacks."""
    for _, group in leaves(resolved.policy.workload.groups):
        for pod_set in _pod_sets_of(group, resolved.pod_sets.pod_sets):
            labels = labels_of_template(pod_set.labels)
            for label, value in labels_of(group).items():
                if labels.get(label) != value:
                    yield f"{pod_set.path}.metadata.labels: {label}: {value}"


def _pod_sets_of(group: GroupPolicy, pod_sets: Sequence[PodSet]) -> list[PodSet]:
    """Return the pod sets that a group names, else those labelled for it, else the only pod set."""
    if group.replicated_jobs:
        return [pod_set for pod_set in pod_sets if pod_set.replicated_job in group.replicated_jobs]
    labelled = [pod_set for pod_set in pod_sets if pod_set.labels and group.name in pod_set.labels.groups]
    return labelled or (list(pod_sets) if len(pod_sets) == 1 else [])


def _step_lines(cluster: Cluster, live: LiveOwner, now: datetime, health: Health | None) -> Iterator[str]:
    """Yield what each step would do; in a DryRunCluster a step sees what the steps before it create."""
    owner = live.owner
    kind = None if owner is None else kind_of(owner)
    if owner is None or kind is None:
        return
    for name in STEPS:
        step, subjects = steps.step_named(name), [owner.ref]
        if name == "mark_runtime":
            subjects = list(filter(None, [kind.runtime(owner)]))
        if name == "patch_pods":
            subjects = [group.ref for group in read_members(cluster, *read_owner(cluster, owner.ref)).groups]
            if not subjects:
                yield "patch_pods: WaitingForPodGroup: no PodGroup exists yet"
        for subject in subjects:
            decision = decide(step, subject, cluster, now)
            yield from as_lines(step, decision)
            if health is not None and isinstance(decision, Plan) and decision.actions:
                yield f"  ({health.carried_out(name)})"
            if isinstance(cluster, DryRunCluster) and isinstance(decision, Plan):
                cluster = cluster.after(decision)


def _conditions_now(
    cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner, now: datetime
) -> Sequence[Condition]:
    """Return the conditions of an owner; none without pods and groups.

    They are computed from the groups and pods, so they are right also where emit_conditions does not run.
    """
    members = read_members(cluster, live, resolved)
    if not (members.pods or members.groups):
        return ()
    events = failed_create(cluster, resolved, members)
    return owner_status(resolved, members, events, now).conditions


def _condition_line(live: LiveOwner, condition: Condition) -> str:
    """Return a condition as text, with the time of its reason if it was written."""
    stored = condition.stored(live.owner) if live.owner else {}
    since = stored.get("lastTransitionTime") if stored.get("reason") == condition.reason else ""
    reason = f"{condition.reason} since {since}" if since else str(condition.reason)
    return ": ".join(filter(None, (condition.type, reason, condition.message)))


def _notes_on_groups(resolved: ResolvedOwner) -> Iterator[str]:
    """Yield each way in which the groups of an owner may be less than a user expects."""
    if resolved.failure is not None:
        if resolved.failure.reason == Reason.PODS_DIFFER:
            yield "the scheduler places no pods of different priority in one group, not even one by one"
        return
    yield from (f"{reason}: {message}" for reason, message in resolved.warnings)
    gangs = [group for group in resolved.tree if group.gang]
    policy = resolved.policy.workload
    if policy.scheduling_timeout_seconds is not None:
        then = {
            "Report": "a condition says so",
            "Basic": "its pods run one by one",
            "Suspend": "it is suspended",
        }
        seconds = policy.scheduling_timeout_seconds
        yield f"a gang may wait {seconds} s for room; then {then[policy.on_timeout]}"
    if policy.on_members_lost != "Report":
        lost = {"Restart": "the rest is evicted and placed again as a whole", "Fail": "its Jobs fail"}
        seconds = policy.members_lost_seconds
        yield f"a gang may lack lost members for {seconds} s; then {lost[policy.on_members_lost]}"
    grows = [group.name for group in gangs if group.template_min_count == 1]
    if grows and isinstance(resolved.owner, Job):
        yield f"{grows[0]} is a gang of 1: pods that are added later are scheduled as they come, not together"

"""What the page of `muster view` shows: gangs, and the changes that made them so, as plain data."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import takewhile
from math import inf
from typing import Any

import yaml

from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.pods import Pod
from muster.objects.resources import NODES, PODS
from muster.objects.yaml_files import SafeDumper
from muster.policy.group_labels import GATE, MANAGED_BY, MUSTER
from muster.replay.activity import Activity
from muster.replay.files import BadFileError, RecordedRequest, time_of
from muster.replay.gangs import NamespaceGangs, read_view
from muster.replay.redaction import without_secrets
from muster.replay.snapshots import Named, Object, RecordedObjects, name_of
from muster.replay.summary import is_gated, muster_conditions

Rows = dict[str, Any]
"""By `gang/NAMESPACE/KIND/NAME`, `pod/NAMESPACE/NAME` and `node/NAME`; None for one that is gone."""

MOST_ENTRIES = 5000
"""Older entries are forgotten, but for the rows that they left."""

_AT_ONCE = 300
"""In namespaces of at most so many objects the change of each pod is shown with the rows that it led to."""

BEFORE_SEEN = 0.5
"""Seconds between the end of a function and the watch event of a write of it, at most."""

_LONGEST_VALUE = 400
_ZONES = "topology.kubernetes.io/"
_NOISE = frozenset({"generation", "managedFields", "resourceVersion"})


class Timeline:
    """The rows at the beginning, and entries with the rows that each changed; one thread writes, all read.

    An entry has `at` (seconds since the epoch), `object`, `gang` and `rows`. That of a change has `verb`,
    `by`, and the `yaml` of a new object or the `diff` of another; that of a function has `run`.

    Attributes:
        first: the number of entries that were forgotten.
    """

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._grown = threading.Condition()
        self.first = 0
        self._entries: list[dict[str, Any]] = []
        self._bodies: dict[Named, Object] = {}
        self._views: defaultdict[str, dict[Named, KubernetesObject]] = defaultdict(dict)
        self._rows: defaultdict[str, Rows] = defaultdict(dict)
        self._pending: list[tuple[dict[str, Any], KubernetesObject | None]] = []
        self._ready: list[dict[str, Any]] = []
        for body in objects:
            self._put(body, deleted=False)
        self._base = {key: row for name in list(self._views) for key, row in self._changed_rows(name).items()}

    def add_change(self, at: float, verb: str, body: Object) -> None:
        """Add a change of an object: ADDED, MODIFIED or DELETED."""
        before, deleted, clean = self._bodies.get(name_of(body)), verb == "DELETED", without_secrets(body)
        entry: dict[str, Any] = {"verb": "deleted" if deleted else "changed" if before else "created"}
        view = self._put(body, deleted=deleted)
        if before is None:
            entry |= {"by": _creator(body), "yaml": yaml.dump(clean, Dumper=SafeDumper, sort_keys=False)}
        elif not deleted:
            entry["diff"] = list(differences(without_secrets(before), clean))
            if not entry["diff"]:
                return
            entry["by"] = _writer(before, body, [path for path, *_ in entry["diff"]])
        self._add(at, name_of(body), entry, view)
        if view is None or not isinstance(view, Pod) or len(self._views[name_of(body)[1]]) <= _AT_ONCE:
            self.settle()

    def add_run(self, activity: Activity) -> None:
        """Add what a function did for an event."""
        kind, _, place = activity.about.partition(" ")
        namespace, _, name = place.rpartition("/")
        fields = ("step", "trigger", "outcome", "reason", "message", "actions")
        run = {field: getattr(activity, field) for field in fields}
        named = kind, namespace, name
        self._add(activity.at, named, {"run": run}, self._views[namespace].get(named))
        self.settle()

    def settle(self) -> None:
        """Give the entries so far the rows that they changed."""
        names = dict.fromkeys(entry["object"]["namespace"] for entry, _ in self._pending)
        gangs = {name: NamespaceGangs(self._views[name].values()) for name in names}
        for entry, view in self._pending:
            of = gangs[entry["object"]["namespace"]]
            entry |= {"gang": _gang_key(of.root_of(view)) if view else "", "rows": {}}
            self._ready.append(entry)
        for name in names:
            self._ready[-1]["rows"] |= self._changed_rows(name, gangs[name])
        self._pending.clear()

    def publish(self, before: float = inf) -> None:
        """Let readers see the entries from before a time (seconds since the epoch); by default all."""
        self.settle()
        for entry in list(self._ready):
            if "run" in entry and "claimed" not in entry and entry["at"] < before:
                self._put_before_its_writes(entry)
        ready = list(takewhile(lambda entry: entry["at"] < before, self._ready))
        if ready:
            del self._ready[: len(ready)]
            with self._grown:
                self._entries += ready
                for entry in self._entries[:-MOST_ENTRIES]:
                    self._base |= entry["rows"]
                self.first += max(0, len(self._entries) - MOST_ENTRIES)
                del self._entries[:-MOST_ENTRIES]
                self._grown.notify_all()

    def _put_before_its_writes(self, run: dict[str, Any]) -> None:
        """Move a run before the first of its writes: those of its gang that were seen next to its end."""
        by = f"muster-{run['run']['step'].replace('_', '-')}"
        writes = [
            one
            for one in self._ready
            if (one.get("by"), one["gang"]) == (by, run["gang"]) and "claimed" not in one
        ]
        writes = [one for one in writes if abs(one["at"] - run["at"]) < BEFORE_SEEN][: run["run"]["actions"]]
        for one in (run, *writes):
            one["claimed"] = True
        if writes:
            run["at"] = min(run["at"], writes[0]["at"])
            self._ready.remove(run)
            self._ready.insert(self._ready.index(writes[0]), run)

    def wait(self, number: int, seconds: float) -> bool:
        """Wait until there are more entries than a number, for some time at most; whether there are."""
        with self._grown:
            return self._grown.wait_for(lambda: self.first + len(self._entries) > number, seconds)

    def since(self, number: int = 0) -> dict[str, Any]:
        """Return what a page needs that has the first entries, so many; all of it if it has none."""
        with self._grown:
            if self.first < number <= self.first + len(self._entries):
                return {"from": number, "entries": self._entries[number - self.first :]}
            return {"from": self.first, "base": dict(self._base), "entries": list(self._entries)}

    def _add(self, at: float, named: Named, entry: dict[str, Any], view: KubernetesObject | None) -> None:
        about = dict(zip(("kind", "namespace", "name"), named, strict=True))
        self._pending.append(({"at": round(at, 3), "object": about, **entry}, view))

    def _put(self, body: Object, *, deleted: bool) -> KubernetesObject | None:
        named, view = name_of(body), read_view(body)
        self._bodies.pop(named, None)
        self._views[named[1]].pop(named, None)
        if not deleted:
            self._bodies[named] = body
            if view is not None:
                self._views[named[1]][named] = view
        return view

    def _changed_rows(self, namespace: str, gangs: NamespaceGangs | None = None) -> Rows:
        """Return the rows of a namespace that changed since the last call."""
        views, before = self._views[namespace].values(), self._rows[namespace]
        found = {_gang_key(one.owner): one.as_data() for one in (gangs or NamespaceGangs(views)).gangs()}
        found |= {
            f"pod/{namespace}/{one.metadata.name}": _pod_row(one) for one in views if isinstance(one, Pod)
        }
        if not namespace:
            nodes = (body for named, body in self._bodies.items() if named[0] == NODES.kind)
            found |= {f"node/{body['metadata']['name']}": _node_row(body) for body in nodes}
        self._rows[namespace] = found
        changed = {key: row for key, row in found.items() if before.get(key) != row}
        return changed | {key: None for key in before if key not in found}


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of each field that differs; None stands for an absent one.

    Entries of lists are compared by their type or name, if they have one.
    """
    old, new = _by_name(before), _by_name(after)
    if before is None and isinstance(after, list) and isinstance(new, dict):
        old = {}
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new} - _NOISE, key=str):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif old != new:
        yield path, _short(before), _short(after)


def recorded(requests: Iterable[RecordedRequest], moments: Iterable[RecordedObjects]) -> Timeline:
    """Return the timeline of a recording, from the objects in its events and moments.

    The resourceVersion of an object says which state came first, also across kinds.

    Raises:
        BadFileError: there is no object, as in events that only refer to one.
    """
    states: dict[tuple[str, int], tuple[float, str, Object]] = {}
    where = ""
    for request in requests:
        event, where = json.loads(request.body), request.location
        body = event.get("data")
        if isinstance(body, dict) and "metadata" in body:
            # Events of pods end with Muster's gate, by which they are watched: such a pod is not gone.
            gone = str(event["type"]).endswith(".delete")
            gone &= body["kind"] != PODS.kind or "deletionTimestamp" in body["metadata"]
            at = time_of(request).timestamp()
            states[_state(body)] = at, "DELETED" if gone else "MODIFIED", body
    begin = min((version for _, version in states), default=0)
    for moment in moments:
        for body in moment.objects:
            states.setdefault(_state(body), (0.0, "MODIFIED", body))
    if not states:
        raise BadFileError(where or "recording", "its events hold no objects; --objects may add them")
    ordered = [state for _, state in sorted(states.items(), key=lambda item: item[0][1])]
    known = [body for (_, version), (*_, body) in states.items() if version < begin]
    timeline, last = Timeline(known), min((at for at, *_ in ordered if at), default=0.0)
    for at, verb, body in ordered:
        if _state(body)[1] >= begin:
            last = max(at, last)
            timeline.add_change(last, verb, body)
    timeline.publish()
    return timeline


def _state(body: Object) -> tuple[str, int]:
    metadata = body["metadata"]
    version = str(metadata.get("resourceVersion", "0"))
    return str(metadata.get("uid")), int(version) if version.isdigit() else 0


def _gang_key(owner: ObjectRef) -> str:
    return f"gang/{owner.namespace}/{owner.kind}/{owner.name}"


def _by_name(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        for field in ("type", "name"):
            names = [one.get(field) for one in value]
            if None not in names and len(set(names)) == len(names):
                return dict(zip(names, value, strict=True))
    return value


def _short(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


def _pod_row(pod: Pod) -> dict[str, str]:
    state = "Gated" if GATE in pod.gates else "Bound" if pod.bound else "Pending"
    if pod.being_deleted:
        state = "Ending"
    elif pod.status.phase not in {"Pending", ""}:
        state = pod.status.phase
    return {"group": pod.pod_group_name, "node": pod.spec.node_name, "state": state}


def _node_row(node: Object) -> dict[str, Any]:
    labels, spec = node["metadata"].get("labels") or {}, node.get("spec") or {}
    places = [value for name, value in sorted(labels.items()) if name.startswith(_ZONES)]
    return {"place": ", ".join(places), "cordoned": bool(spec.get("unschedulable"))}


def _creator(body: Object) -> str:
    """Return the field manager that created an object; without managedFields Muster's, by its label."""
    metadata = body["metadata"]
    for entry in metadata.get("managedFields") or []:
        return str(entry.get("manager", ""))
    maker = "create-workload" if body["kind"] == "Workload" else "create-pod-groups"
    return f"muster-{maker}" if (metadata.get("labels") or {}).get(MANAGED_BY) == MUSTER else ""


def _writer(before: Object, after: Object, paths: Iterable[str]) -> str:
    """Return who changed fields: Muster's function by what it alone writes, else the owner of one of them.

    A field that was removed has no owner, so that managedFields do not tell who removed a gate.
    """
    if after["kind"] == PODS.kind and is_gated(before) and not is_gated(after):
        return "muster-patch-pods"
    if after["kind"] == "PodGroup" and before["spec"] != after["spec"]:
        return "muster-resize-gang"
    if muster_conditions(before) != muster_conditions(after):
        return "muster-emit-conditions"
    entries = after["metadata"].get("managedFields") or []
    for path in paths:
        top, field, *rest = [*path.split(".", 2), ""]
        for entry in sorted(entries, key=lambda one: str(one.get("time")), reverse=True):
            owned = ((entry.get("fieldsV1") or {}).get(f"f:{top}") or {}).get(f"f:{field}")
            if owned is not None and (field != "conditions" or any(_names(key, rest[0]) for key in owned)):
                return str(entry.get("manager", ""))
    return ""


def _names(key: str, path: str) -> bool:
    """Whether a key of managedFields, `k:{"type":"Ready"}`, is that of a condition in a path."""
    return key.startswith("k:") and path.startswith(str(json.loads(key[2:]).get("type")))

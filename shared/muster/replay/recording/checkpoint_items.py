"""The objects of one checkpoint as YAML, without secrets, as many as can be replayed."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import yaml

from muster.objects import yaml_files
from muster.objects.memory import MOST_MEMORY, memory_of
from muster.objects.text import has_more_values
from muster.policy.limits import SNAPSHOT_BYTES
from muster.replay.files import TEXT_BYTES
from muster.replay.recording.redaction import is_secret, redact_runtime_snapshot, without_secrets
from muster.replay.snapshots import Object

MOST_VALUES = 20_000
"""The most JSON values of an object: a pod has some 200, and one of 1.5 MiB in environment variables 200,000,
which take a second to become YAML."""
CHECKPOINT_MEMORY = MOST_MEMORY // 4
"""The most memory of the data of a checkpoint: a file whose data take more than MOST_MEMORY, which has two
checkpoints at least, is not replayed."""
CHECKPOINT_BYTES = TEXT_BYTES // 2
"""The most bytes of a checkpoint; a file of more than TEXT_BYTES, which has two at least, is not replayed."""
ONE_NAMESPACE = 3 / 4
"""The part of a checkpoint for the objects of one namespace, whose users decide how large they are."""

DENSE = f"of more than {MOST_VALUES} JSON values"
NO_ROOM, SECRET = "beyond what can be replayed of a moment", "that is a Secret"
"""Why objects are left out of a checkpoint."""


class CheckpointItems:
    """Turns the objects of one checkpoint into YAML, and leaves out those that are too large.

    Attributes:
        left_out: the number of objects that were left out, by reason.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._total = 0.0
        self._parts: defaultdict[str, float] = defaultdict(float)

    def yaml_of(self, body: Object) -> list[bytes]:
        """Return the YAML of an object as an item of a list; nothing for one that is left out.

        One by one: while data become YAML they take up to 200 times the memory of their JSON.
        """
        if is_secret(body):
            self.left_out[SECRET] += 1
            return []
        if _count(body, MOST_VALUES) > MOST_VALUES:
            self.left_out[DENSE] += 1
            return []
        cleaned = without_secrets(body)
        namespace = body["metadata"].get("namespace", "")
        part = memory_of(cleaned) / CHECKPOINT_MEMORY
        if self._has_room(namespace, part):
            text = as_yaml([cleaned]).encode()
            part = max(part, len(text) / CHECKPOINT_BYTES)
            if self._has_room(namespace, part):
                self._total += part
                self._parts[namespace] += part
                return [text]
        self.left_out[NO_ROOM] += 1
        return []

    def yaml_of_snapshot(self, config_map: Object) -> list[bytes]:
        """Return the YAML of a ConfigMap with the Trainer's copy of a runtime; nothing if it is left out.

        The copy is parsed, which takes a second for a megabyte, only if there is room for it as it is stored.
        """
        text = (config_map.get("data") or {}).get("runtime", "")
        namespace = config_map["metadata"].get("namespace", "")
        is_parsed = isinstance(text, str) and len(text) <= SNAPSHOT_BYTES
        if is_parsed and (reason := self._obstacle(namespace, text)):
            self.left_out[reason] += 1
            return []
        return self.yaml_of(with_data(config_map, {"runtime": redact_runtime_snapshot(text)}))

    def _obstacle(self, namespace: str, text: str) -> str:
        """Return why a text of a namespace is not parsed; "" if nothing is in the way."""
        encoded = text.encode(errors="replace")
        # In a list of YAML each value may have a line of its own, without any of JSON's characters.
        if has_more_values(encoded, MOST_VALUES) or encoded.count(b"\n") > MOST_VALUES:
            return DENSE
        part = max(memory_of(text) / CHECKPOINT_MEMORY, len(encoded) / CHECKPOINT_BYTES)
        return "" if self._has_room(namespace, part) else NO_ROOM

    def _has_room(self, namespace: str, part: float) -> bool:
        """Whether there is room for a part of the checkpoint; objects without a namespace may take all."""
        most = ONE_NAMESPACE if namespace else 1.0
        return self._total + part <= 1.0 and self._parts[namespace] + part <= most


def as_yaml(value: Any) -> str:
    """Return the YAML of JSON data."""
    text: str = yaml.dump(value, Dumper=yaml_files.SafeDumper, sort_keys=False, width=110)
    return text


def with_data(config_map: Object, data: dict[str, str]) -> Object:
    """Return a ConfigMap with other data."""
    fields = {name: value for name, value in config_map.items() if name != "binaryData"}
    return {**fields, "data": data}


def _count(value: Any, most: int) -> int:
    """Return the number of JSON values in a value, itself included; any number above `most` for more."""
    rest, count = [value], 0
    while rest and count + len(rest) <= most:
        count += 1
        last = rest.pop()
        if isinstance(last, dict):
            rest.extend(last.values())
        elif isinstance(last, list):
            rest.extend(last)
    return count + len(rest)

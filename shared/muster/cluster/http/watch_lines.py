"""The lines of a watch, whose objects share a budget of memory over all watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import urllib3

from muster.cluster import errors
from muster.cluster.http.answer_json import MOST_VALUES, parsed
from muster.cluster.interface import Object
from muster.objects.text import has_more_values, separators

LONGEST_LINE = 4 * 1024 * 1024
"""The most bytes of a line of a watch; etcd stores objects of 1.5 MiB."""
MEMORY = 64 * 1024 * 1024
"""The bytes of memory that the lines in work of all watches share; a line that needs more has all of it."""
LIGHT = 256 * 1024
"""The bytes of memory up to which a line waits for no other, as most do; each watch has one at most."""
LONGEST_PART = 256 * 1024
"""The bytes from which on the rest of a line is read by one watch alone."""
_CHUNK = 64 * 1024
_BYTE, _VALUE = 8, 200
"""The memory of each byte of a line (itself, the text of its object, and the event about it) and value."""

_CHANGES = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}
"""The types of lines of a watch beside ERROR."""


class Budget:
    """Bytes of memory that threads share; one that waits for much is not overtaken.

    Args:
        memory: how many there are.
    """

    def __init__(self, memory: int) -> None:
        self.memory = self._free = memory
        self._turn = threading.Lock()
        self._changed = threading.Condition()

    def take(self, wanted: int) -> None:
        """Take so many bytes once they are free; the caller has none yet."""
        with self._turn, self._changed:
            self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted

    def give_back(self, taken: int) -> None:
        """Give bytes back."""
        with self._changed:
            self._free += taken
            self._changed.notify()


_BUDGET = Budget(MEMORY)
"""The budget of all watches of this process."""


class _Share:
    """What one watch has of a budget, for the line that it reads or whose object is in use."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._taken = 0

    def take(self, wanted: int) -> None:
        """Wait for a share unless there is one already, which is that of the whole line."""
        if not self._taken and wanted > LIGHT:
            wanted = min(wanted, self._budget.memory)
            self._budget.take(wanted)
            self._taken = wanted

    def give_back(self) -> None:
        """Give the share back, if there is one."""
        if self._taken:
            self._budget.give_back(self._taken)
            self._taken = 0


def changes_of(path: str, response: urllib3.BaseHTTPResponse) -> Iterator[tuple[str, Object]]:
    """Yield type and object of each line of a watch; ends where the connection ends.

    An object has its share of the memory until the next one is asked for.

    Raises:
        AnswerTooLarge: a line has more than LONGEST_LINE bytes, or more than MOST_VALUES values.
        Unavailable: a line has another shape.
        ClusterError: a line is an error.
    """
    share = _Share(_BUDGET)
    try:
        for line in _lines(path, response, share):
            kind, obj = _change(path, line)
            if kind == "ERROR":
                code = obj.get("code")
                raise errors.from_answer(code if isinstance(code, int) else 500, obj, {})
            yield kind, obj
            del line, obj  # megabytes, while the next one is waited for
    finally:
        share.give_back()


def _lines(path: str, response: urllib3.BaseHTTPResponse, share: _Share) -> Iterator[bytes]:
    """Yield the lines as they come, without empty ones, each with its share until the next is asked for."""
    rest = b""
    try:
        for chunk in response.stream(amt=_CHUNK):
            *complete, rest = (rest + chunk).split(b"\n")
            complete.reverse()
            while complete:
                if complete[-1].strip():
                    share.take(_BYTE * len(complete[-1]) + _VALUE * separators(complete[-1]))
                    yield complete.pop()
                    share.give_back()
                else:
                    complete.pop()
            if len(rest) > LONGEST_LINE:
                raise errors.AnswerTooLarge(f"{path}: a line has more than {LONGEST_LINE} bytes")
            if len(rest) > LONGEST_PART:
                share.take(_BUDGET.memory)
    except urllib3.exceptions.HTTPError:
        return  # the server or the read timeout ended the watch; the caller resumes from its last version


def _change(path: str, line: bytes) -> tuple[str, Object]:
    """Return the type and the object of a line of a watch; that of an ERROR is a Status.

    Raises:
        AnswerTooLarge: the line has more than MOST_VALUES values.
        Unavailable: the line has another shape.
    """
    if has_more_values(line, MOST_VALUES):
        raise errors.AnswerTooLarge(f"{path}: a line has more than {MOST_VALUES} values")
    change = parsed(line)
    if isinstance(change, dict) and isinstance(obj := change.get("object"), dict):
        kind = str(change.get("type"))
        if kind == "ERROR" or (kind in _CHANGES and _is_object(obj, needs_name=kind != "BOOKMARK")):
            return kind, obj
    raise errors.Unavailable(f"{path}: the answer is no watch")


def _is_object(obj: Object, *, needs_name: bool) -> bool:
    """Whether an object of a watch has the fields that all have; that of a bookmark has no name."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return False
    named = [obj.get("apiVersion"), obj.get("kind"), metadata.get("name"), metadata.get("namespace", "")]
    texts = [metadata.get("resourceVersion"), *(named if needs_name else ())]
    return all(isinstance(text, str) for text in texts)

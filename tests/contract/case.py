"""What a contract case is, and how its conversation with a server is written down.

A case is a function that talks to an API server and asserts one rule. Everything it was answered is also
written down, with names, times and identities replaced, and compared with what the real server answered
(`answers/`). So the embedded server is held to the rule a case names and to the status, reason, causes and
objects around it; sentences are recorded and not compared (see `answers.difference`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.api import JSON, Answer, Api

Run = Callable[["Conversation", str], None]

DIFF = re.compile(r"(pod updates may not change fields other than [^\n]*)\n.*", re.DOTALL)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PATCHED = re.compile(r'Invalid value: "\{.*\}"(?=: )', re.DOTALL)
"""The whole object, which the real server repeats when a patch makes nonsense of it."""

PARSER = re.compile(r"(?<=continue key is not valid: ).*")
VERSION = re.compile(
    r"(?<=ResourceVersion in precondition: )\d+|(?<=ResourceVersion in object meta: )\d+|(?<=in record \()\d+"
)
GENERATED = re.compile(r"\b(made-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
GO_VALUE = re.compile(r'Invalid value: (\{"|\[\{").*?(?=: [a-zA-Z`])', re.DOTALL)
"""Values of whole structs: the real server prints its internal Go types there, which nobody relies on."""


@dataclass(frozen=True)
class Case:
    """One rule of the API.

    Attributes:
        name: the rule, as a sentence.
        run: talks to the server in a namespace of its own, and asserts the rule.
        subject: the file it is in.
        releases: the Kubernetes releases in which the rule holds.
        controllers: it needs the garbage collector and its like, so also the real controller manager.
    """

    name: str
    run: Run
    subject: str
    releases: tuple[str, ...] = ("1.37",)
    controllers: bool = False

    @property
    def key(self) -> str:
        """Its name in `answers/` and in file names."""
        return self.run.__name__


class Cases:
    """The cases of one file: a decorator that collects functions, named by their docstrings' first lines."""

    def __init__(self, module: str) -> None:
        self.all: list[Case] = []
        self._subject = module.rpartition(".")[2]

    def __call__(
        self, *, releases: tuple[str, ...] = ("1.37",), controllers: bool = False
    ) -> Callable[[Run], Run]:
        """Collect a function as a case."""

        def collect(run: Run) -> Run:
            name = (run.__doc__ or "").partition("\n")[0]
            assert name, f"{run.__name__} does not say which rule it proves"
            self.all.append(Case(name, run, self._subject, releases, controllers))
            return run

        return collect


@dataclass
class Conversation:
    """An API that writes down what is asked and answered.

    Attributes:
        api: the server.
        namespace: the case's own; its name is replaced in what is written down.
        entries: one for each request so far.
    """

    api: Api
    namespace: str
    entries: list[dict[str, Any]] = field(default_factory=list)
    _identities: dict[str, str] = field(default_factory=dict)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request, whatever its answer."""
        answer = self.api.request(method, path, body, content_type, query)
        told = {**(query or {}), **({"continue": "<token>"} if query and "continue" in query else {})}
        asked = f"{method} {path}" + (f"?{'&'.join(f'{k}={v}' for k, v in told.items())}" if told else "")
        self.entries.append(
            {"asked": self._told(asked), "status": answer.status, "body": self._clean(answer.body)}
        )
        return answer

    def must(self, method: str, path: str, body: Any = None, content_type: str = JSON, **query: str) -> Any:
        """A request that has to succeed; its body."""
        answer = self.request(method, path, body, content_type, query or None)
        assert answer.ok, f"{method} {path}: {answer.status} {answer.reason}: {answer.message or answer.body}"
        return answer.body

    def watch(self, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """The events of a watch until the server ends it; written down as one entry."""
        answer = self.api.request("GET", path, None, JSON, {"watch": "true", **query})
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        events = [json.loads(line) for line in text.splitlines() if line.strip()]
        told = [
            {"type": event["type"], "name": event["object"]["metadata"].get("name", "")} for event in events
        ]
        self.entries.append({"asked": self._told(f"WATCH {path}"), "status": answer.status, "body": told})
        return iter(events)

    def _told(self, text: str) -> str:
        text = text.replace(self.namespace, "<namespace>")
        text = UID.sub(lambda found: self._identity(found.group()), text)
        text = GENERATED.sub(r"\1<random>", text)
        return VERSION.sub("<version>", TIME.sub("<time>", text))

    def _identity(self, uid: str) -> str:
        return self._identities.setdefault(uid, f"<uid {len(self._identities) + 1}>")

    def _clean(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {
                self._told(name): self._clean(item, name)
                for name, item in sorted(value.items())
                if name not in {"managedFields", "remainingItemCount", "storageVersionHash"}
            }
        if isinstance(value, list):
            cleaned = [self._clean(item, key) for item in value]
            if key == "causes":  # 1.36 tells some causes twice, which says nothing
                return [item for i, item in enumerate(cleaned) if item not in cleaned[:i]]
            return cleaned
        if not isinstance(value, str):
            return value
        if key in {"resourceVersion", "continue"} and value:
            return "<version>"
        if key == "message":
            value = PATCHED.sub("Invalid value: <value>", value)
            value = PARSER.sub("<why>", value)
            value = GO_VALUE.sub("Invalid value: <value>", DIFF.sub(r"\1", value))
        return self._told(value)

"""Contract cases, and the recording of their requests and answers.

A case is a function that sends requests to an API server and asserts one rule. All answers are also recorded,
with names, times and UIDs replaced by placeholders, and compared with the recorded answers of the real server
(`answers/`). So the embedded server must fulfil the rule and return the same status, reason, causes and
objects; messages are recorded but not compared (see `answers.difference`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.cluster.api import JSON, ApiResponse, KubernetesApi

Run = Callable[["Conversation", str], None]

DIFF = re.compile(r"(pod updates may not change fields other than [^\n]*)\n.*", re.DOTALL)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PATCHED = re.compile(r'Invalid value: "\{.*\}"(?=: )', re.DOTALL)
"""The whole object, which the real server repeats when a patch makes it invalid."""

VERSION = re.compile(
    r"(?<=ResourceVersion in precondition: )\d+|(?<=ResourceVersion in object meta: )\d+|(?<=in record \()\d+"
    r"|(?<=resourceVersion=)[1-9]\d{0,8}(?=&resourceVersionMatch=Exact)"
)
GENERATED = re.compile(r"\b(made-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
GO_VALUE = re.compile(r'Invalid value: (\{"|\[\{").*?(?=: [a-zA-Z`])', re.DOTALL)
"""Values of whole structs, which the real server prints as internal Go types."""


@dataclass(frozen=True)
class ContractCase:
    """One rule of the API, as a sentence, with what asserts it in a namespace of its own.

    Attributes:
        subject: name of the case's module.
        releases: the Kubernetes releases in which the rule holds.
        controllers: whether it needs controllers that carry out deletions (real: kube-controller-manager).
    """

    name: str
    run: Run
    subject: str
    releases: tuple[str, ...] = ("1.37",)
    controllers: bool = False

    @property
    def key(self) -> str:
        """The case's key in the files of `answers/`."""
        return self.run.__name__


class Cases:
    """A decorator that collects the cases of one module; a case's name is the first line of its docstring."""

    def __init__(self, module: str) -> None:
        self.all: list[ContractCase] = []
        self._subject = module.rpartition(".")[2]

    def __call__(
        self, *, releases: tuple[str, ...] = ("1.37",), controllers: bool = False
    ) -> Callable[[Run], Run]:
        """Return the decorator that adds a function as a case."""

        def collect(run: Run) -> Run:
            name = (run.__doc__ or "").partition("\n")[0]
            assert name, f"{run.__name__} does not say which rule it proves"
            self.all.append(ContractCase(name, run, self._subject, releases, controllers))
            return run

        return collect


@dataclass
class Conversation:
    """A client that records requests and answers.

    Attributes:
        namespace: the case's own namespace; its name is replaced in the entries.
        token_of: returns a token of a service account, by namespace and name; the embedded server takes the
            user's name for one.
        manager: the field manager of its writes; "" leaves it to the server.
    """

    api: KubernetesApi
    namespace: str
    entries: list[dict[str, Any]] = field(default_factory=list)
    token_of: Callable[[str, str], str] = "system:serviceaccount:{}:{}".format
    manager: str = ""
    _identities: dict[str, str] = field(default_factory=dict)

    def as_user(self, token: str, manager: str = "") -> Conversation:
        """Return the same conversation with the token of another user, whose writes have a field manager."""
        return replace(self, api=replace(self.api, token=token), manager=manager)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """Send a request and return the answer, whatever its status."""
        managed = {"fieldManager": self.manager} if self.manager and method in {"PATCH", "PUT"} else {}
        answer = self.api.request(method, path, body, content_type, {**managed, **(query or {})})
        shown = {**(query or {}), **({"continue": "<token>"} if query and "continue" in query else {})}
        request = f"{method} {path}" + (f"?{'&'.join(f'{k}={v}' for k, v in shown.items())}" if shown else "")
        self.entries.append(
            {"asked": self._masked(request), "status": answer.status, "body": self._clean(answer.body)}
        )
        return answer

    def must(self, method: str, path: str, body: Any = None, content_type: str = JSON, **query: str) -> Any:
        """Send a request that must succeed, and return the body of the answer."""
        answer = self.request(method, path, body, content_type, query or None)
        assert answer.ok, f"{method} {path}: {answer.status} {answer.reason}: {answer.message or answer.body}"
        return answer.body

    def watch(self, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Return the events of a watch until the server ends it; they are recorded as one entry."""
        answer = self.api.request("GET", path, None, JSON, {"watch": "true", **query})
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        events = [json.loads(line) for line in text.splitlines() if line.strip()]
        body = [
            {"type": event["type"], "name": event["object"]["metadata"].get("name", "")} for event in events
        ]
        self.entries.append({"asked": self._masked(f"WATCH {path}"), "status": answer.status, "body": body})
        return iter(events)

    def _masked(self, text: str) -> str:
        text = text.replace(self.namespace, "<namespace>")
        text = UID.sub(lambda match: self._identity(match.group()), text)
        text = GENERATED.sub(r"\1<random>", text)
        return VERSION.sub("<version>", TIME.sub("<time>", text))

    def _identity(self, uid: str) -> str:
        return self._identities.setdefault(uid, f"<uid {len(self._identities) + 1}>")

    def _clean(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {
                self._masked(name): self._clean(item, name)
                for name, item in sorted(value.items())
                if name not in {"managedFields", "remainingItemCount", "storageVersionHash"}
            }
        if isinstance(value, list):
            cleaned = [self._clean(item, key) for item in value]
            if key == "causes":  # 1.36 returns some causes twice
                return [item for i, item in enumerate(cleaned) if item not in cleaned[:i]]
            return cleaned
        if not isinstance(value, str):
            return value
        if key in {"resourceVersion", "continue"} and value:
            return "<version>"
        if key == "message":
            value = PATCHED.sub("Invalid value: <value>", value)
            value = GO_VALUE.sub("Invalid value: <value>", DIFF.sub(r"\1", value))
        return self._masked(value)

"""Requests and answers as plain values, without HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.status import (
    ApiError,
    bad_request,
    conflict,
    invalid_object,
    not_supported,
    required,
)

Stream = Callable[[], Iterator[bytes]]
"""Starts a watch: pieces of JSON, one event each; an empty piece asks whether the client is still there."""

APPLY = "application/apply-patch+yaml"

NO_PROTOBUF = (
    "this server reads JSON and YAML, not protobuf, which kubectl sends for `kubectl create <kind>`; "
    "write the object to a file and use `kubectl apply -f`"
)


@dataclass(frozen=True)
class Answer:
    """What goes back.

    Attributes:
        status: the HTTP status.
        body: JSON as bytes or an object to encode; None for no body.
        headers: beside Content-Type and Content-Length.
        stream: a watch, instead of a body.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        """The body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


@dataclass
class Request:
    """One request, taken apart.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE.
        path: the URL's path, still quoted where a name is.
        query: the last value of each parameter.
        headers: by lower-case name.
        body: as sent.
        verb: what it does in Kubernetes' words; set when it was routed.
        resource: plural and subresource, `podgroups/status`; set when it was routed.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    verb: str = ""
    resource: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def user_agent(self) -> str:
        """Who asks."""
        return self.headers.get("user-agent", "")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "application/json").partition(";")[0].strip()

    @property
    def manager(self) -> str:
        """The field manager: the query parameter, or the first part of the user agent."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0][:128] or "unknown"

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return bool(self.query.get("dryRun"))

    @cached_property
    def json(self) -> Any:
        """The parsed body, of JSON or YAML.

        Raises:
            ApiError: 400 or 415, it cannot be read.
        """
        if self.content_type in {APPLY, "application/yaml"}:
            return self._yaml()
        if self.content_type == "application/vnd.kubernetes.protobuf":
            raise ApiError(415, "UnsupportedMediaType", NO_PROTOBUF)
        try:
            return json.loads(self.body or b"null")
        except ValueError as error:
            raise bad_request(f"error decoding: {error}") from error

    def _yaml(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            import yaml  # noqa: PLC0415 - only for clients that send YAML

        try:
            return yaml.safe_load(self.body)
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: {error}") from error

    def check_options(self, options: str) -> None:
        """Refuse query parameters with values the server does not know.

        Args:
            options: the kind that names them in the answer, `PatchOptions`.
        """
        errors = []
        if self.query.get("dryRun", "All") not in {"All", ""}:
            errors.append(not_supported("dryRun", [self.query["dryRun"]], ("All",)))
        if self.query.get("fieldValidation", "Warn") not in {"Strict", "Warn", "Ignore", ""}:
            errors.append(
                not_supported(
                    "fieldValidation", self.query["fieldValidation"], ("", "Ignore", "Strict", "Warn")
                )
            )
        if self.content_type == APPLY and not self.query.get("fieldManager"):
            errors.append(required("fieldManager", "is required for apply patch"))
        if errors:
            raise invalid_object("meta.k8s.io", options, "", errors)


@dataclass(frozen=True)
class Target:
    """What a request is about.

    Attributes:
        kind: which kind in which version.
        namespace: empty for cluster-scoped kinds and for lists over all namespaces.
        name: empty for a collection.
        subresource: `status`, `scale` and the like; empty for the object itself.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The object's place in the store."""
        return self.namespace, self.name

    def decodes(self, request: Request) -> Object:
        """The body of a request, checked to be an object of this kind.

        Raises:
            ApiError: 400, it is no object, or its apiVersion or kind is another.
        """
        body = request.json
        if not isinstance(body, dict):
            raise bad_request(
                f"the object provided is unrecognized (must be of type {self.kind.kind}): couldn't get "
                f"version/kind; json parse error: json: cannot unmarshal {json_type(body)} into Go value of "
                f"type {GO_TYPE_META} ({request.body[:12].hex()})"
            )
        self.check_type(body)
        return body

    def check_type(self, body: Object) -> None:
        """Refuse an object of another kind or version.

        Raises:
            ApiError: 400.
        """
        version, kind = body.get("apiVersion") or self.kind.api_version, body.get("kind") or self.kind.kind
        group = version.rpartition("/")[0]
        if version != self.kind.api_version and (kind != self.kind.kind or group != self.kind.group):
            raise bad_request(
                f'{kind} in version "{self.kind.version}" cannot be handled as a {self.kind.kind}: '
                f'no kind "{kind}" is registered for version "{version}" '
                'in scheme "pkg/runtime/scheme.go:111"'
            )
        if version != self.kind.api_version:
            raise bad_request(
                f"the API version in the data ({version}) does not match "
                f"the expected API version ({self.kind.api_version})"
            )
        if kind != self.kind.kind:
            internal = self.kind.group.partition(".")[0] or "core"
            raise bad_request(
                f'{kind} in version "{self.kind.version}" cannot be handled as a {self.kind.kind}: '
                f"converting ({self.kind.version}.{kind}) to ({internal}.{self.kind.kind}): "
                "unknown conversion"
            )


GO_TYPE_META = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
"""How Go prints the type it decodes a body's apiVersion and kind into."""


def json_type(value: Any) -> str:
    """The JSON type of a parsed value, as Go names it."""
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names.get(type(value), "null")


SPECIAL_PLACES = {"nodes": "minions", "services": "services/specs"}


def uid_conflict(target: Target, given: str, current: str) -> ApiError:
    """409: the body is about another object of that name; the words are the real storage's."""
    kind = target.kind
    place = f"{kind.group}/{kind.plural}" if kind.custom else SPECIAL_PLACES.get(kind.plural, kind.plural)
    key = "/".join(part for part in ("/registry", place, target.namespace, target.name) if part)
    return conflict(
        kind.group,
        kind.plural,
        target.name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {given}, UID in object meta: {current}",
    )

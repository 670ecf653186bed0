"""Request, response and target of a request as plain values, without HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from muster.simulator.apiserver.http import protobuf
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.status import (
    ApiError,
    bad_request,
    conflict,
    invalid_object,
    not_supported,
    required,
    unsupported_media_type,
)

Stream = Callable[[], Iterator[bytes]]
"""Starts a watch: yields the JSON of an event each, or empty bytes to have the connection checked."""

_ESCAPED_SURROGATE, _SURROGATE = re.compile(rb"\\u[dD]"), re.compile("[\ud800-\udfff]")
APPLY = "application/apply-patch+yaml"
ADMINISTRATOR = "kubernetes-admin"
"""The name of a user without a token."""

READ_TYPES = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
NO_CUSTOM_PROTOBUF = (
    "protobuf of {} is not supported; let the client send JSON: in client-go set "
    'ContentType of rest.Config to "application/json"'
)
ONLY_JSON = (
    "the embedded API server answers in JSON only; let the client accept it: in client-go set "
    'AcceptContentTypes of rest.Config to "application/vnd.kubernetes.protobuf,application/json"'
)


@dataclass(frozen=True)
class Response:
    """A response.

    Attributes:
        status: the HTTP status.
        body: JSON as bytes or an object to encode; None for no body.
        headers: headers other than Content-Type and Content-Length.
        stream: the events of a watch, in place of a body.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        """Return the body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


@dataclass
class Request:
    """A parsed request.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE.
        path: the path of the URL, percent-encoded.
        query: the last value of each parameter.
        headers: by lower-case name.
        body: the bytes as received.
        verb: the Kubernetes verb; set by `routes.route`.
        resource: plural and subresource, `podgroups/status`; set by `routes.route`.
        warnings: texts for the Warning header of the response.
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
        """The User-Agent header; empty if unset."""
        return self.headers.get("user-agent", "")

    @property
    def user(self) -> str:
        """The name of the user: the bearer token, which is not checked; without a token an administrator."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" and token.strip() else ADMINISTRATOR

    @property
    def content_type(self) -> str:
        """The media type of the body without parameters."""
        return self.headers.get("content-type", "application/json").partition(";")[0].strip()

    def accepted_type(self) -> str:
        """Return the first media type of Accept that JSON can answer, with parameters: `...;as=Table`.

        Raises:
            ApiError: 406, JSON is none of them.
        """
        types = [each.strip() for each in self.headers.get("accept", "*/*").split(",") if each.strip()]
        for each in types or ["*/*"]:
            if each.partition(";")[0].strip() in {"application/json", "application/*", "*/*"}:
                return each
        raise ApiError(406, "NotAcceptable", ONLY_JSON)

    @property
    def manager(self) -> str:
        """The field manager: the parameter `fieldManager`, or the user agent up to its first slash."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0][:128] or "unknown"

    def integer(self, name: str) -> int:
        """Return a parameter that is a number; 0 if it is missing.

        Raises:
            ApiError: 400, it is no integer of 64 bits.
        """
        return _integer(self.query.get(name) or "0")

    @property
    def version(self) -> int:
        """The parameter `resourceVersion` as a number; 0 if it is missing.

        Raises:
            ApiError: 400, it is no unsigned integer of 64 bits.
        """
        return _integer(self.query.get("resourceVersion") or "0", signed=False)

    @property
    def dry_run(self) -> bool:
        """Whether the request must not be persisted."""
        return bool(self.query.get("dryRun"))

    @cached_property
    def json(self) -> Any:
        """The parsed body, from JSON, YAML or protobuf.

        Raises:
            ApiError: 400, the body is malformed; 415, it has another media type, or is protobuf of an unknown
                kind.
        """
        if self.content_type in {APPLY, "application/yaml"}:
            return self._yaml()
        if self.content_type == protobuf.MEDIA_TYPE:
            return self._protobuf()
        if self.method != "PATCH" and self.content_type != "application/json":
            raise unsupported_media_type(READ_TYPES)
        try:
            return from_json(self.body or b"null")
        except ValueError as error:
            raise bad_request(f"error decoding: {error}") from error

    def _protobuf(self) -> Any:
        try:
            return protobuf.decode(self.body)
        except protobuf.UnknownMessageError as error:
            raise ApiError(415, "UnsupportedMediaType", NO_CUSTOM_PROTOBUF.format(error)) from error
        except ValueError as error:
            raise bad_request(f"error decoding protobuf: {error}") from error

    def _yaml(self) -> Any:
        try:
            return from_json(self.body)
        except ValueError:
            from muster.simulator.apiserver.http import yaml_bodies  # noqa: PLC0415 - imports `yaml`

        try:
            return yaml_bodies.load(self.body)
        except ValueError as error:
            raise bad_request(f"error decoding YAML: {error}") from error

    def check_options(self, options: str) -> None:
        """Validate the query parameters of a write.

        Args:
            options: the kind named in the error, `PatchOptions`.

        Raises:
            ApiError: 422, a parameter has an unsupported value.
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
class RequestTarget:
    """The resource that a request addresses.

    Attributes:
        kind: the kind in the version of the URL.
        namespace: empty for cluster-scoped kinds and for lists over all namespaces.
        name: empty for a collection.
        subresource: `status`, `scale` and so on; empty for the object itself.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of the object in the store: namespace and name."""
        return self.namespace, self.name

    def object_in(self, request: Request) -> Object:
        """Return the body of a request as an object of this kind.

        Raises:
            ApiError: 400, the body is not an object, or has another apiVersion or kind.
        """
        body = request.json
        if reason := unreadable_type(body):
            start = request.body[:12].hex()
            if isinstance(body, dict):
                start = f"{request.body[:24].decode(errors='replace')} ..."
            raise bad_request(
                f"the object provided is unrecognized (must be of type {self.kind.kind}): {reason} ({start})"
            )
        self.check_type(body)
        return dict(body)

    def check_type(self, body: Object) -> None:
        """Check that an object has this kind and version.

        Raises:
            ApiError: 400, it has another.
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


def from_json(text: bytes) -> Any:
    """Return the value of JSON, with U+FFFD for lone surrogates and bytes that are no UTF-8, as in Go.

    kube-apiserver keeps such bytes in managedFields, where this reads U+FFFD.

    Raises:
        ValueError: it is no JSON.
    """
    value = json.loads(text.decode(errors="replace"))
    if not _ESCAPED_SURROGATE.search(text):
        return value
    return json.loads(_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def _integer(text: str, *, signed: bool = True) -> int:
    """Return the integer of 64 bits in a parameter; the errors are those of Go's strconv."""
    name, pattern, least, most = ("ParseInt", r"[+-]?0*(\d{1,20})", -(2**63), 2**63 - 1)
    if not signed:
        name, pattern, least, most = ("ParseUint", r"0*(\d{1,20})", 0, 2**64 - 1)
    if match := re.fullmatch(pattern, text, re.ASCII):
        value = int(f"-{match[1]}" if text.startswith("-") else match[1])
        if least <= value <= most:
            return value
    is_number = re.fullmatch(r"[+-]?\d+" if signed else r"\d+", text, re.ASCII)
    why = "value out of range" if is_number else "invalid syntax"
    raise bad_request(f"strconv.{name}: parsing {json.dumps(text, ensure_ascii=False)}: {why}")


def unreadable_type(body: Any) -> str:
    """Return why apiVersion and kind of a body cannot be read; "" if they can."""
    if not isinstance(body, dict):
        value = f"{json_type(body)} into Go value of type {GO_TYPE_META}"
    elif wrong := [name for name in ("apiVersion", "kind") if not isinstance(body.get(name), str | None)]:
        value = f"{json_type(body[wrong[0]])} into Go struct field .{wrong[0]} of type string"
    else:
        return ""
    return f"couldn't get version/kind; json parse error: json: cannot unmarshal {value}"


GO_TYPE_META = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
"""The Go type into which the real server decodes apiVersion and kind, as its errors print it."""


def json_type(value: Any) -> str:
    """Return the JSON type of a parsed value, as Go prints it."""
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names.get(type(value), "null")


ETCD_PREFIXES = {"nodes": "minions", "services": "services/specs"}
"""The etcd prefixes of resources that are not stored under their plural."""


def uid_conflict(target: RequestTarget, uid: str, current: str) -> ApiError:
    """409: the object of that name has another UID; the message is that of the real storage."""
    kind = target.kind
    prefix = f"{kind.group}/{kind.plural}" if kind.custom else ETCD_PREFIXES.get(kind.plural, kind.plural)
    key = "/".join(part for part in ("/registry", prefix, target.namespace, target.name) if part)
    return conflict(
        kind.group,
        kind.plural,
        target.name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current}",
    )

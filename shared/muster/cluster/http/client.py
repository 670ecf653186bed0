"""The client of an API server: the implementation of `RawCluster`.

Configuration, credentials, TLS and the connection pool come from the `kubernetes` package; requests are raw
JSON. The package's API classes are not used: each takes up to 0.3 s to import, and their models drop unknown
fields of an object that is read and written back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.config.incluster_config import load_incluster_config

from muster.cluster import errors
from muster.cluster.http.connections import Connections, parsed
from muster.cluster.interface import FROM_CACHE, Object, Objects, PatchType
from muster.objects.resources import NAME, Resource, by_kind
from muster.policy.model import Action, Verb

PAGE = 500
"""The most objects in one page of a list."""


class Client:
    """Raw JSON over the connection pool of the `kubernetes` package; safe to share between threads."""

    def __init__(self, configuration: Configuration, *, user_agent: str = "muster") -> None:
        self._connections = Connections(configuration, user_agent)
        self.user_agent = user_agent
        self.url = self._connections.url

    @classmethod
    def for_server(cls, url: str, *, user_agent: str = "muster") -> Self:
        """Return a client without credentials, for an API server on this machine."""
        configuration = Configuration(host=url)
        configuration.proxy = None
        return cls(configuration, user_agent=user_agent)

    @classmethod
    def in_cluster(cls, *, user_agent: str = "muster") -> Self:
        """Return a client with the pod's service account; the token file is read again as it is renewed."""
        configuration = Configuration()
        load_incluster_config(client_configuration=configuration)
        return cls(configuration, user_agent=user_agent)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the live object, or None if there is none of that name."""
        if not NAME.fullmatch(name):  # an ownerReference may have any text: `../../team-b/trainjobs/llama`
            return None
        try:
            return self._call("GET", resource.path(name, namespace))
        except errors.ApiGone:
            raise
        except errors.Gone:
            return None

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind, each with its apiVersion and kind as from a GET."""
        return self.list_with_version(resource, namespace, labels=labels, fields=fields, as_of=as_of)[0]

    def list_with_version(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> tuple[Objects, str]:
        """Return all objects of a kind, and the resourceVersion from which a watch sees later changes.

        They are read in pages. Where their resourceVersion expires before the last page, or is too old or too
        new for the API server to begin with, the list goes on once at the state that the server has.
        """
        path = resource.path(namespace=namespace)
        selectors = {"labelSelector": labels, "fieldSelector": fields, "limit": str(PAGE)}
        match = {"resourceVersionMatch": "Exact"} if as_of not in ("", FROM_CACHE) else {}
        position = {"resourceVersion": as_of, **match}
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        objects: Objects = []
        tries = 2
        while True:
            try:
                answer = self._call("GET", path, query=selectors | position)
            except (errors.Expired, errors.VersionTooLarge) as error:
                tries -= 1
                if not tries:
                    raise
                token = error.token if isinstance(error, errors.Expired) else ""
                position = {"continue": token}
                if not token:
                    objects.clear()
                continue
            objects += (kind | item for item in answer.get("items") or [])
            metadata = answer["metadata"]
            position = {"continue": metadata.get("continue") or ""}
            if not position["continue"]:
                return objects, metadata["resourceVersion"]

    def write(self, action: Action, manager: str) -> Object:
        """Carry out one action, in the version that its target names."""
        target = action.target
        known = by_kind(target.api_version, target.kind)
        resource = replace(known, version=target.api_version.rpartition("/")[2])
        match action.verb:
            case Verb.CREATE:
                body = dict(action.body or {})
                return self.create(resource, body, manager=manager, subresource=action.subresource)
            case Verb.UPDATE:
                path = resource.path(target.name, target.namespace, action.subresource)
                return self._call("PUT", path, query={"fieldManager": manager}, body=action.body)
            case Verb.PATCH:
                if action.patch is None:
                    raise ValueError(f"{target}: the patch has no media type")
                return self.patch(
                    resource,
                    target.name,
                    target.namespace,
                    list(action.operations) if action.patch == PatchType.JSON else action.body,
                    patch=action.patch,
                    manager=manager,
                    subresource=action.subresource,
                )
            case Verb.DELETE:
                self.delete(resource, target.name, target.namespace, uid=target.uid)
                return {}

    def create(self, resource: Resource, body: Object, *, manager: str, subresource: str = "") -> Object:
        """Create an object, or a subresource of the one of its name; returns it as it is stored."""
        metadata = body["metadata"]
        name = metadata["name"] if subresource else ""
        path = resource.path(name, metadata.get("namespace", ""), subresource)
        return self._call("POST", path, query={"fieldManager": manager}, body=body)

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        body: Any,
        *,
        patch: PatchType,
        manager: str,
        subresource: str = "",
    ) -> Object:
        """Patch an object; returns it as it is stored."""
        path = resource.path(name, namespace, subresource)
        return self._call("PATCH", path, query={"fieldManager": manager}, body=body, content_type=patch)

    def delete(self, resource: Resource, name: str, namespace: str = "", *, uid: str = "") -> None:
        """Delete an object, only that of `uid` if it is given; an object that is gone is no error."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self._call("DELETE", resource.path(name, namespace), body=options)
        except errors.ApiGone:
            raise
        except errors.Gone:
            return

    def served_versions(self, group: str) -> frozenset[str]:
        """Return the served versions and resources of an API group, as `v1beta1/podgroups`; empty if none."""
        try:
            versions = [entry["version"] for entry in self._call("GET", f"/apis/{group}")["versions"]]
        except errors.Gone:
            return frozenset()
        served: set[str] = set()
        for version in versions:
            resources = self._call("GET", f"/apis/{group}/{version}")["resources"]
            served |= {f"{version}/{resource['name']}" for resource in resources}
        return frozenset(served)

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        resource_version: str = "",
        timeout_seconds: int = 300,
    ) -> Iterator[tuple[str, Object]]:
        """Yield ("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", object) after `resource_version`."""
        query = {
            "watch": "true",
            "labelSelector": labels,
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            "allowWatchBookmarks": "true",
        }
        path = resource.path(namespace=namespace)
        response = self._connections.open("GET", path, query, None, timeout_seconds + 5)
        try:
            if response.status >= 400:
                raise errors.from_answer(response.status, parsed(response.data), response.headers)
            for line in _lines(response):
                change = parsed(line)
                if change["type"] == "ERROR":
                    raise errors.from_answer(change["object"].get("code", 500), change["object"], {})
                yield change["type"], change["object"]
        finally:
            response.close()

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> tuple[int, Any]:
        """Send any request; returns the status and the parsed body, also of an error."""
        status, content, _ = self.receive(method, path, query or {}, body, content_type)
        return status, parsed(content)

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        status, content, headers = self.receive(method, path, query or {}, body, content_type)
        answer = parsed(content)
        if status >= 400:
            raise errors.from_answer(status, answer, headers)
        if not isinstance(answer, dict):
            raise errors.Unavailable(f"{method} {path}: the answer is not a JSON object", status=status)
        return answer

    def receive(
        self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send a request; returns status, body and headers, also of an error.

        All requests but watches use this method, so a client of a server in the same process overrides only
        this one.
        """
        return self._connections.receive(method, path, query, body, content_type)


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the lines of a watch until the connection ends."""
    rest = b""
    with suppress(urllib3.exceptions.HTTPError):  # the caller resumes from its last version
        for chunk in response.stream(64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)

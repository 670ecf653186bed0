"""The client of an API server: the implementation of `RawCluster`.

Configuration, credentials, TLS and the connection pool come from the `kubernetes` package; requests are raw
JSON. The package's API classes are not used: each takes up to 0.3 s to import, and their models drop unknown
fields of an object that is read and written back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from kubernetes.client.configuration import Configuration
from kubernetes.config.incluster_config import load_incluster_config

from muster.cluster import errors
from muster.cluster.http.answer_json import is_dense, parse_answer, parsed, text_bytes
from muster.cluster.http.answers import (
    expect_object,
    items_of,
    object_of,
    texts_of,
    with_metadata,
)
from muster.cluster.http.connections import Connections, read_body
from muster.cluster.http.watch_lines import changes_of
from muster.cluster.interface import CACHED, Object, Objects, PatchType
from muster.cluster.paging import Page, PageSizes, all_pages
from muster.objects.resources import NAME, Resource, by_kind
from muster.policy.model import Action, Verb

PAGE = 500

PAGE_BYTES = 4 * 1024 * 1024
"""Bytes to aim at in one page of a list: 500 pods."""

"""The most objects in one page of a list."""

LONGEST_REFUSAL = 64 * 1024
"""The bytes that are read of the refusal of a watch."""


class Client:
    """Raw JSON over the connection pool of the `kubernetes` package; safe to share between threads.

    That of a kubeconfig is made by `muster.cluster.kubeconfig`.

    Args:
        configuration: the API server's address, and the credentials.
        user_agent: the caller's name in the API server's audit log.
        namespace: the only namespace that is listed, for an installation with Roles; empty for all.
        page_bytes: bytes to aim at in a page of a list.
        keep_certificates: see `Connections`.

    Attributes:
        user_agent: the caller's name in the API server's audit log.
        before_page: called with the kind, `pods`, before a page of a list is read, for signs of progress.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        user_agent: str = "muster",
        namespace: str = "",
        page_bytes: int = PAGE_BYTES,
        keep_certificates: bool = False,
    ) -> None:
        self._connections = Connections(configuration, user_agent, keep_certificates=keep_certificates)
        self.user_agent = user_agent
        self._namespace = namespace
        self._pages = PageSizes(PAGE, page_bytes)
        self._serves_as_of = True
        self.before_page: Callable[[str], object] = lambda _kind: None

    @classmethod
    def for_server(cls, url: str, **options: Any) -> Self:
        """Return a client without credentials, for an API server on this machine."""
        return cls(Configuration(host=url), **options)

    @classmethod
    def in_cluster(cls, **options: Any) -> Self:
        """Return a client with the pod's service account; the token file is read again as it is renewed."""
        configuration = Configuration()
        load_incluster_config(client_configuration=configuration)
        return cls(configuration, **options)

    @property
    def url(self) -> str:
        """The URL of the API server, without user name and password."""
        return self._connections.url

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the live object, or None if there is none of that name.

        None also for an invalid name: an ownerReference may have any text, such as
        `../../team-b/trainjobs/llama`, which must not get into a URL.
        """
        if not NAME.fullmatch(name):
            return None
        try:
            path = resource.path(name, namespace)
            return with_metadata(path, self._call("GET", path))
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
        """Return all objects of a kind, and the resourceVersion from which a watch sees later changes."""
        joined = all_pages(
            lambda token: self.page(
                resource, namespace, labels=labels, fields=fields, as_of=as_of, token=token
            )
        )
        return joined.objects, joined.version

    def list_version(self, resource: Resource, namespace: str = "", *, labels: str = "") -> str:
        """Return the resourceVersion of a list, from which a watch sees later changes; reads one object."""
        path = self._list_path(resource, namespace)
        answer = self._call("GET", path, query={"labelSelector": labels, "limit": "1"})
        return str(items_of(path, answer)[1]["resourceVersion"])

    def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        as_of: str = "",
        token: str = "",
    ) -> Page:
        """Return the next objects of a kind: at most 500, and fewer where they are large or come slowly.

        Raises:
            Expired: the token is too old; the error has one that continues from there, at a later moment.
        """
        query = {"labelSelector": labels, "fieldSelector": fields, "continue": token}
        path = self._list_path(resource, namespace)
        self.before_page(resource.plural)
        answer, size = self._first_page(path, query, "" if token else as_of)
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        items, metadata = items_of(path, answer)
        self._pages.read(path, len(items), size)
        return Page(
            [kind | item for item in items],
            metadata.get("continue") or "",
            metadata["resourceVersion"],
            size,
        )

    def _list_path(self, resource: Resource, namespace: str) -> str:
        """Return the path of a list; without a namespace it is that of the client's own, if it has one."""
        return resource.path(namespace=(namespace or self._namespace) if resource.namespaced else namespace)

    def _first_page(self, path: str, query: Mapping[str, str], as_of: str) -> tuple[Object, int]:
        """Return page and size at resourceVersion `as_of`, or of the newest state if the server lacks it.

        An API server that keeps its resources in several etcds (`--etcd-servers-overrides`) has several
        counters of resourceVersions; after the first one that is too large none is sent any more.
        """
        if not (as_of and self._serves_as_of):
            return self._page(path, query)
        try:
            match = {} if as_of == CACHED else {"resourceVersionMatch": "Exact"}
            return self._page(path, {**query, "resourceVersion": as_of, **match})
        except errors.Expired:
            pass
        except errors.VersionTooLarge:
            self._serves_as_of = False
        return self._page(path, query)

    def _page(self, path: str, query: Mapping[str, str]) -> tuple[Object, int]:
        """Return a page and its `text_bytes`; a page that is too large is read in smaller parts.

        A page that comes too slowly is smaller the next time.
        """
        while True:
            most = self._pages.most_bytes(path)
            limited = {"limit": str(self._pages.of(path)), **query}
            try:
                status, content, headers = self.receive(
                    "GET", path, limited, None, "application/json", most_bytes=most
                )
            except errors.AnswerTooLarge:
                if most is None:
                    raise
                self._pages.shrink(path)
                continue
            except errors.Unavailable:
                self._pages.shrink(path)
                raise
            size = text_bytes(content)
            if most is None or (size <= most and not is_dense(content)):
                return object_of("GET", path, status, parse_answer(content), headers), size
            self._pages.shrink(path)

    def write(self, action: Action, manager: str) -> Object:
        """Carry out one action, in the version that its target names; returns an object that was created.

        Other answers are not parsed: a pod of 2 MiB would take 30.
        """
        target = action.target
        known = by_kind(target.api_version, target.kind)
        resource = replace(known, version=target.api_version.rpartition("/")[2])
        match action.verb:
            case Verb.CREATE:
                return self.create(resource, dict(action.body or {}), manager=manager)
            case Verb.UPDATE | Verb.PATCH:
                self._change(resource, action, manager)
                return {}
            case Verb.DELETE:
                self.delete(resource, target.name, target.namespace, uid=target.uid)
                return {}

    def _change(self, resource: Resource, action: Action, manager: str) -> None:
        """Replace or patch an object, without parsing the answer."""
        target = action.target
        body: Any = action.body
        method, content_type = "PUT", "application/json"
        if action.verb is Verb.PATCH:
            if action.patch is None:
                raise ValueError(f"{target}: the patch has no media type")
            method, content_type = "PATCH", str(action.patch)
            body = list(action.operations) if action.patch == PatchType.JSON else body
        path = resource.path(target.name, target.namespace, action.subresource)
        status, content, headers = self.receive(method, path, {"fieldManager": manager}, body, content_type)
        if status >= 400:
            raise errors.from_answer(status, parsed(content), headers)
        expect_object(path, status, content)

    def create(self, resource: Resource, body: Object, *, manager: str) -> Object:
        """Create an object; returns it as it is stored."""
        path = resource.path(namespace=body["metadata"].get("namespace", ""))
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

    def replace(self, resource: Resource, body: Object, *, manager: str, subresource: str = "") -> Object:
        """Replace an object, whose body has a resourceVersion; returns it as it is stored."""
        metadata = body["metadata"]
        path = resource.path(metadata["name"], metadata.get("namespace", ""), subresource)
        return self._call("PUT", path, query={"fieldManager": manager}, body=body)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "Background",
    ) -> None:
        """Delete an object, only that of `uid` if it is given; an object that is gone is no error."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
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
            path = f"/apis/{group}"
            versions = texts_of(path, self._call("GET", path), "versions", "version")
        except errors.Gone:
            return frozenset()
        served: set[str] = set()
        for version in versions:
            path = f"/apis/{group}/{version}"
            names = texts_of(path, self._call("GET", path), "resources", "name")
            served |= {f"{version}/{name}" for name in names}
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
        """Yield the changes of a kind after `resource_version`: ("ADDED" | "MODIFIED" | "DELETED", object).

        A "BOOKMARK" has only a newer resourceVersion to resume from. A large object in another
        watch may wait until the next change is asked for. Ends with the server, or after `timeout_seconds`.

        Raises:
            Expired: the resourceVersion is too old; list again.
        """
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
                refusal = parsed(read_body(response, LONGEST_REFUSAL, f"GET {path}"))
                raise errors.from_answer(response.status, refusal, response.headers)
            yield from changes_of(path, response)
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
        status, answer, _ = self.exchange(method, path, query or {}, body, content_type)
        return status, answer

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        return object_of(method, path, *self.exchange(method, path, query or {}, body, content_type))

    def exchange(
        self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Send a request; returns status, parsed body and headers, also of an error."""
        status, content, headers = self.receive(method, path, query, body, content_type)
        return status, parse_answer(content), headers

    def receive(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        content_type: str,
        *,
        most_bytes: int | None = None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send a request; returns status, body and headers, also of an error.

        All requests but watches use this method, so a client of a server in the same process overrides only
        this one.

        Raises:
            AnswerTooLarge: the body has more than `most_bytes`; the rest of it is not read.
        """
        return self._connections.receive(method, path, query, body, content_type, most_bytes=most_bytes)

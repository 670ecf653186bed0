"""A cluster with a deadline: for one event, calls are counted, and refused after the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from threading import BoundedSemaphore, Lock
from typing import Any, TypeVar

from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.http import deadline
from muster.cluster.http.answer_json import parsed, parsing_with
from muster.cluster.interface import SINGLE_READS, Cluster, Object, Objects
from muster.cluster.paging import Page, all_pages, with_short_texts, without_containers
from muster.objects.resources import EVENTS, Resource, SchedulingApi, by_kind
from muster.policy.model import Action
from muster.runtime.sharing.list_memory import ListMemory, SharedListMemory
from muster.runtime.telemetry.tracing import Spans, no_spans

T = TypeVar("T")

LARGE_OBJECT = 8 * 1024
"""Bytes of an object beyond which a GET counts as a list: an event may read dozens. A usual one has 5 KB."""

LARGE_PAGE = 1024 * 1024
"""Bytes of a page beyond which no other is in memory before it counts; 100 pods have 800 KB."""

CallListener = Callable[[str, str, str], None]
"""Takes verb, resource (`jobs/status`) and result of a call: `ok`, the HTTP status of an error, or `none`."""


class DeadlineExceeded(Unavailable):
    """The deadline of the event passed before the call was made, or before its answer came."""


class DeadlineClient:
    """Forwards calls, counts them, and refuses them after the deadline.

    No call waits beyond the deadline for its answer: the broker gives up on the event soon after, and would
    deliver it a second time while the first delivery is still in work.

    Args:
        cluster: the cluster to call.
        seconds: the time until the deadline.
        on_call: called after every forwarded call.
        spans: the factory of a span for each call.
        limits: what one owner, and one event, may cost.
        memory: the memory that the lists of all events share; None for one of its own.

    Attributes:
        calls: the number of forwarded calls.
        newest: whether lists are of the newest state whatever their `as_of`, as in a sweep: the objects that
            it reads may have changed last when Muster was not running.
    """

    single_reads = SINGLE_READS

    def __init__(
        self,
        cluster: Cluster,
        seconds: float,
        on_call: CallListener = lambda _verb, _resource, _status: None,
        spans: Spans = no_spans,
        *,
        memory: SharedListMemory | None = None,
    ) -> None:
        self._memory = ListMemory(memory or SharedListMemory())
        self._counts_lists = False
        self._cluster = cluster
        self.policy_namespace = cluster.policy_namespace
        self._spans = spans
        self._on_call = on_call
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._pause: Callable[[float], bool] | None = None
        self._pausing = Lock()
        self._around_calls: Callable[[], AbstractContextManager[None]] = nullcontext
        self._before_parsing: Callable[[], object] = lambda: None
        self._calls_lock = Lock()
        self.calls = 0
        self.newest = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; not above 0 once it has passed."""
        return self._end - time.monotonic()

    @property
    def time_is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.seconds_left <= 0

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """See `Cluster`; a large object counts as those of lists, and waits as those of `_few_large_objects`.

        Raises:
            TooManyObjects, NoRoomForObjects: see `list`.
        """

        def parse(content: bytes) -> Any:
            if self._counts_lists and len(content) > LARGE_OBJECT:
                self._memory.add_text(content, namespace)
            return parsed(content)

        def read() -> Object | None:
            with self._few_large_objects(parse):
                return self._cluster.get(resource, name, namespace)

        return self._forward("get", resource.plural, read)

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """See `Cluster`; each page is a call.

        Containers and volumes are left out (`without_containers`), and long texts of Events are cut.

        Raises:
            TooManyObjects: since `begin`, lists had more than three quarters of EVENT_BYTES.
            NoRoomForObjects: those of the namespace's events had more than three quarters of what those of
                others leave of EVENT_BYTES.
        """
        light = with_short_texts if resource == EVENTS else without_containers

        def page_at(token: str) -> Page:
            with self.one_large_page(lambda content: _parse_page(content, light)):
                page = self.page(resource, namespace, labels=labels, fields=fields, as_of=as_of, token=token)
                if self._counts_lists:
                    self._memory.add(page.objects, namespace, page.size)
            return page

        return all_pages(page_at).objects

    @contextmanager
    def one_large_page(self, parse: Callable[[bytes], Any] = parsed) -> Iterator[None]:
        """Parse answers in the `with` block with `parse`; while it has a large one, no other thread has one.

        So in the block a page is reduced to what counts or what a sweep keeps. A wait ends at the deadline.
        """
        with ExitStack() as held:

            def parse_alone(content: bytes) -> Any:
                held.close()  # that of an answer in place of which this one was read
                self._before_parsing()  # a sweep waits here: not while others wait for the lock below
                if len(content) > LARGE_PAGE:
                    self._hold(self._memory.page_lock, held, "large pages of other events were parsed")
                return parse(content)

            with parsing_with(parse_alone):
                yield

    @contextmanager
    def _few_large_objects(self, parse: Callable[[bytes], Any] = parsed) -> Iterator[None]:
        """Read answers of more than LARGE_ANSWER in the `with` block while few others do.

        Those of more than LARGE_PAGE are parsed one at a time, large pages among them. A wait ends at the
        deadline.
        """
        memory = self._memory
        with ExitStack() as held:

            def wait() -> None:
                held.close()  # that of an answer in place of which this one is read
                self._hold(memory.large_objects, held, "large objects of other events were read")

            def parse_alone(content: bytes) -> Any:
                if len(content) <= LARGE_PAGE:
                    return parse(content)
                with ExitStack() as alone:
                    self._hold(memory.page_lock, alone, "large pages of other events were parsed")
                    return parse(content)

            with parsing_with(parse_alone, wait):
                yield

    def _hold(self, lock: Lock | BoundedSemaphore, held: ExitStack, others: str) -> None:
        """Take a lock until `held` is closed.

        Raises:
            Unavailable: what others do took until the deadline.
        """
        if not lock.acquire(timeout=max(0.0, self.seconds_left)):
            raise Unavailable(f"until then {others}")
        held.callback(lock.release)

    def count_text(self, text: bytes, namespace: str) -> None:
        """Count an object of a namespace that a sweep kept as JSON, before it is parsed; see `list`."""
        self._memory.add_text(text, namespace)

    def begin(self) -> None:
        """Begin to look at an object: from here on the memory of lists is limited."""
        self._memory.release()
        self._counts_lists = True

    def pause_with(self, pause: Callable[[float], bool]) -> None:
        """Call `pause` before each call from now on, with the seconds until the deadline.

        It may wait so long, and returns whether the event may go on.
        """
        self._pause = pause

    def compute_with(
        self, around_calls: Callable[[], AbstractContextManager[None]], before_parsing: Callable[[], object]
    ) -> None:
        """Make each call from now on in a context; call a function before a page is parsed."""
        self._around_calls = around_calls
        self._before_parsing = before_parsing

    def end(self) -> None:
        """Give the memory of the lists back."""
        self._memory.release()
        self._counts_lists = False

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
        """See `Cluster`; an event waits while PAGES_AT_ONCE others read a page, until its deadline."""
        at = "" if self.newest else as_of

        def read() -> Page:
            with ExitStack() as held:
                if self._counts_lists:
                    self._hold(self._memory.pages, held, "pages of other events were read")
                return self._cluster.page(
                    resource, namespace, labels=labels, fields=fields, as_of=at, token=token
                )

        return self._forward("list", resource.plural, read)

    def write(self, action: Action, manager: str) -> Object:
        """See `Cluster`; a large answer waits as those of `_few_large_objects`."""
        resource = by_kind(action.target.api_version, action.target.kind)
        path = f"{resource.plural}/{action.subresource}" if action.subresource else resource.plural

        def send() -> Object:
            with self._few_large_objects():
                return self._cluster.write(action, manager)

        return self._forward(str(action.verb), path, send)

    def served_versions(self, group: str) -> frozenset[str]:
        """See `Cluster`."""
        return self._forward("discover", group, lambda: self._cluster.served_versions(group))

    def scheduling(self) -> SchedulingApi:
        """See `Cluster`; usually cached, so it counts as no call."""
        with deadline.until(self._end):
            return self._cluster.scheduling()

    def refresh(self) -> None:
        """See `Cluster`."""
        self._cluster.refresh()

    def _forward(self, verb: str, resource: str, call: Callable[[], T]) -> T:
        self._let_others_work()
        if self.time_is_over:
            raise DeadlineExceeded(f"the {self._seconds:g} s for one event ended after {self.calls} calls")
        with self._calls_lock:
            self.calls += 1
        try:
            with self._around_calls(), self._spans(f"{verb} {resource}"), deadline.until(self._end):
                answer = call()
        except ClusterError as error:
            self._on_call(verb, resource, str(error.status or "none"))
            if isinstance(error, Unavailable) and not error.status and self.time_is_over:
                raise DeadlineExceeded(f"the {self._seconds:g} s for one event ended: {error}") from error
            raise
        self._on_call(verb, resource, "404" if answer is None and verb == "get" else "ok")
        return answer

    def _let_others_work(self) -> None:
        """Pause if others come first; calls of other threads for the event wait as well."""
        if self._pause is None:
            return
        with self._pausing:
            if not self._pause(self.seconds_left):
                raise DeadlineExceeded(f"the {self._seconds:g} s for one event ended in a pause for others")


def _parse_page(content: bytes, light: Callable[[Any], Any]) -> Any:
    """Return the answer with a page, and `light` of each of its objects."""
    answer = parsed(content)
    items = answer.get("items") if isinstance(answer, dict) else None
    if isinstance(items, list):
        answer["items"] = [light(item) if _has_metadata(item) else item for item in items]
    return answer


def _has_metadata(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("metadata"), dict)

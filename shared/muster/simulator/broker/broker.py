"""The broker: accepts events, delivers them to every matching trigger, and publishes the replies.

As with the in-memory channel and the async-handler annotation of eventing/base/broker.yaml, a publisher gets
its response before delivery, order is not guaranteed, and accepted events are lost with the process.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic

from muster.simulator.apiserver.http import HttpServer, Request, Response
from muster.simulator.broker.delivery import (
    DeliveryOutcome,
    HttpTarget,
    Recipient,
    Target,
    Wait,
    deliver,
    failed_with,
    passed_headers,
    trace_headers,
)
from muster.simulator.broker.events import CloudEvent, NotAnEventError
from muster.simulator.broker.wiring import Trigger, Wiring
from muster.simulator.clock import now

FIRST_TTL = 255
"""Maximum length of a chain of replies; the next reply is dropped (cmd/broker/ingress/main.go, v0.47.0)."""

TTL = "knativebrokerttl"
ADDRESS = "http://broker-ingress.knative-eventing.svc.cluster.local"
"""The host of every broker of a cluster, as dead letters of refused replies name it."""

_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """The broker did not accept an event: its TTL is used up."""


@dataclass(frozen=True)
class Report:
    """The result of a delivery to a trigger, passed to the observer."""

    trigger: str
    event: CloudEvent
    status: int  # of the last attempt; 0 if there was no response
    attempts: int
    seconds: float
    reply: CloudEvent | None = None
    dead_letter: int | None = None  # status of the sink; None if nothing was sent


@dataclass(frozen=True)
class _Accepted:
    """An event for one trigger, with the replies that may follow and the headers that are passed on."""

    trigger: Trigger
    event: CloudEvent
    ttl: int
    passed: Mapping[str, str]


class Broker:
    """A broker with its triggers.

    Each trigger has its own threads, so that a slow function delays neither the source nor other functions.
    Without workers, `pump` delivers the events in order of arrival and without retry delays.
    """

    def __init__(
        self,
        wiring: Wiring,
        subscribers: Mapping[str, Target | str],
        *,
        observe: Callable[[Report], None] = lambda _report: None,
        workers: int = 100,
        clock: Callable[[], str] = now,
    ) -> None:
        """Take the URL or function of each Service that is named by a trigger; 0 workers: only `pump`."""
        self.wiring = wiring
        self.address = f"{ADDRESS}/{wiring.namespace}/{wiring.name}"
        self._targets = {
            name: HttpTarget(target, connections=workers or 1) if isinstance(target, str) else target
            for name, target in subscribers.items()
        }
        for trigger in wiring.triggers:
            for name in filter(None, (trigger.subscriber, trigger.delivery.dead_letter)):
                if name not in self._targets:
                    raise LookupError(
                        f"trigger {trigger.name} needs Service {name}, which has no address here"
                    )
        self._observe = observe
        self._clock = clock
        self._waiting: deque[_Accepted] = deque()
        self._unfinished = 0
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._workers = workers
        self._pools: dict[str, ThreadPoolExecutor] = {}

    def start(self) -> None:
        """Start the workers; nothing was published before."""
        for trigger in self.wiring.triggers if self._workers else ():
            self._pools[trigger.name] = ThreadPoolExecutor(self._workers, trigger.name)

    def stop(self) -> None:
        """Finish the attempts in flight and stop; waiting events and retries are dropped."""
        self._stopping.set()
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)
        for target in self._targets.values():
            if isinstance(target, HttpTarget):
                target.close()

    def publish(self, event: CloudEvent, headers: Mapping[str, str] | None = None) -> None:
        """Queue a valid event for all matching triggers; RefusedError if its TTL is used up."""
        headers, ttl = headers or {}, FIRST_TTL
        with suppress(ValueError):
            ttl = int(event[TTL]) - 1
        self._accept(event, ttl, {**passed_headers(headers), **trace_headers(headers)})

    def idle(self) -> bool:
        """Whether every event was delivered."""
        return self._unfinished == 0

    def drain(self, timeout: float) -> bool:
        """Wait until the broker is idle; return False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(self.idle, timeout)

    def pump(self) -> int:
        """Deliver waiting events and their replies in this thread; return the number of deliveries."""
        delivered = 0
        while self._waiting:
            self._deliver(self._waiting.popleft(), lambda _seconds: False)
            self._unfinished -= 1
            delivered += 1
        return delivered

    def _accept(self, event: CloudEvent, ttl: int, passed: Mapping[str, str]) -> None:
        if ttl <= 0:
            raise RefusedError(f"event {event['id']} of type {event['type']} follows {FIRST_TTL} replies")
        arrived = event.without(TTL).with_attributes(knativearrivaltime=self._clock())
        for trigger in self.wiring.triggers:
            if not trigger.passes(arrived.attributes):
                continue
            accepted = _Accepted(trigger, arrived, ttl, passed)
            with self._changed:
                self._unfinished += 1
            if not self._workers:
                self._waiting.append(accepted)
                continue
            with suppress(RuntimeError):  # the broker has stopped
                self._pools[trigger.name].submit(self._work, accepted)

    def _work(self, accepted: _Accepted) -> None:
        try:
            self._deliver(accepted, self._stopping.wait)
        except Exception:  # noqa: BLE001 - a function of this process, or the observer, may raise anything
            _log.exception("event %s for %s", accepted.event["id"], accepted.trigger.name)
        finally:
            with self._changed:
                self._unfinished -= 1
                self._changed.notify_all()

    def _deliver(self, accepted: _Accepted, wait: Wait) -> None:
        start, trigger, event = monotonic(), accepted.trigger, accepted.event
        passed = {**accepted.passed, "Kn-Namespace": trigger.namespace}
        subscriber = self._recipient(trigger, trigger.subscriber, {**passed, "Prefer": "reply"})
        outcome = deliver(subscriber, event, trigger.delivery, wait)
        seconds = monotonic() - start
        failed, error = not outcome.succeeded and not outcome.cut_short, outcome.error
        if outcome.reply:
            answered = {**outcome.passed, **trace_headers(accepted.passed)}
            try:
                outcome.reply.validate()
                self._accept(outcome.reply, accepted.ttl - 1, answered)
            except (NotAnEventError, RefusedError):
                failed, error = True, failed_with(self.address, HTTPStatus.BAD_REQUEST, b"")
                passed = {**answered, "Kn-Namespace": trigger.namespace}
        dead_letter = None
        if failed:
            # An event that was a dead letter before keeps the attributes of that failure (`AddExtension`).
            earlier = {name: event[name] for name in error if event[name]}
            letter = event.with_attributes(**{TTL: str(accepted.ttl)}, **{**error, **earlier})
            dead_letter = self._send_dead_letter(trigger, letter, passed, wait)
        self._observe(
            Report(
                trigger=trigger.name,
                event=event,
                status=outcome.status,
                attempts=outcome.attempts,
                seconds=seconds,
                reply=outcome.reply,
                dead_letter=dead_letter.status if dead_letter else None,
            )
        )

    def _send_dead_letter(
        self, trigger: Trigger, event: CloudEvent, headers: Mapping[str, str], wait: Wait
    ) -> DeliveryOutcome | None:
        outcome = None
        if trigger.delivery.dead_letter:
            sink = self._recipient(trigger, trigger.delivery.dead_letter, headers)
            outcome = deliver(sink, event, trigger.delivery, wait)
        if not outcome or not outcome.succeeded:
            _log.error("event %s (%s) is lost for %s", event["id"], event["type"], trigger.name)
        return outcome

    def _recipient(self, trigger: Trigger, service: str, headers: Mapping[str, str]) -> Recipient:
        target = self._targets[service]
        name, slash, path = service.partition("/")
        address = f"http://{name}.{trigger.namespace}{slash}{path}"
        address = target.url if isinstance(target, HttpTarget) else address
        return Recipient(target, address, headers, may_reply="Prefer" in headers)


class Ingress(HttpServer):
    """An HTTP server for one broker, on 127.0.0.1."""

    def __init__(self, broker: Broker) -> None:
        """Bind a free port."""
        super().__init__(self._publish)
        self._broker = broker
        self._path = f"/{broker.wiring.namespace}/{broker.wiring.name}"
        self.url += self._path

    def _publish(self, request: Request) -> Response:
        if request.path != self._path:
            return Response(404, f"the broker is at {self._path}\n".encode())
        try:
            event = CloudEvent.from_http(request.headers, request.body)
            self._broker.publish(event, request.headers)
        except (NotAnEventError, RefusedError) as error:
            return Response(400, f"{error}\n".encode())
        return Response(202, b"")

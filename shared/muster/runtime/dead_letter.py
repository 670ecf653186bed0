"""The sink of dead letters: keeps undelivered events as ConfigMaps, for `muster redrive`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Lock

from muster.cluster.errors import AlreadyExists, Gone, Unavailable
from muster.cluster.interface import RawCluster
from muster.cluster.permissions import may
from muster.events import dead_letters
from muster.events.dead_letters import DeadLetter
from muster.objects.meta import ObjectRef
from muster.objects.resources import CONFIGMAPS
from muster.policy.model import Action, Verb
from muster.policy.reasons import Reason
from muster.runtime.config import Settings, own_namespace
from muster.runtime.handle import Clock, InFlight
from muster.runtime.http import responses
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.telemetry import logs
from muster.runtime.telemetry.metrics import Metrics

NAME = "dead_letter"
MANAGER = "muster-dead-letter"
PERMISSIONS = may("create list delete", CONFIGMAPS)


class DeadLetters:
    """Keeps the newest dead letters, up to a limit; safe to use from several threads."""

    def __init__(self, cluster: RawCluster, settings: Settings, clock: Clock) -> None:
        self.name, self.manager, self.permissions = NAME, MANAGER, PERMISSIONS
        self.settings = settings
        self.in_flight = InFlight()
        self.metrics = Metrics(NAME, lambda: self.in_flight.count)
        self.cluster, self._clock = cluster, clock
        self.namespace = settings.dead_letter_namespace or own_namespace()
        self._kept: list[str] | None = None
        self._lock = Lock()

    def handle(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Return the answer to a dead letter: 202 once it is stored; never raises."""
        with self.in_flight:
            started = time.perf_counter()
            letter: DeadLetter | None = None
            try:
                letter = dead_letters.of_request(headers, body)
                outcome = self._store(letter)
            except Exception as error:  # noqa: BLE001 - an error that escapes here would lose the event
                outcome = responses.of_error(error)
            self._report(headers, letter, outcome, time.perf_counter() - started)
            return responses.answer(outcome)

    def refuse(self, headers: Mapping[str, str]) -> HttpAnswer:
        """Return the answer to a request whose body is too large."""
        self._report(headers, None, responses.BODY_TOO_LARGE, 0.0)
        return responses.answer(responses.BODY_TOO_LARGE)

    def _store(self, letter: DeadLetter) -> Outcome:
        """Store a letter unless it is stored already, then delete the oldest above the limit."""
        failed = (
            f"answered {letter.code}: {letter.answer}" if letter.code else "gave no answer that is an event"
        )
        message = f"{letter.function or 'a function'} {failed}"
        config_map = dead_letters.to_config_map(letter, self.namespace)
        with self._lock:
            if self._kept is None:
                self._kept = self._stored()
        try:
            self.cluster.write(Action(Verb.CREATE, self._ref(letter.name), config_map), self.manager)
        except AlreadyExists:
            return Outcome(OutcomeKind.NOTHING, Reason.DEAD_LETTER_STORED, message)
        except Gone as error:
            # A missing namespace leaves a step nothing to do, but would lose a dead letter: retry.
            raise Unavailable(error.message) from error
        with self._lock:
            self._kept.append(letter.name)
            while len(self._kept) > self.settings.dead_letter_limit:
                # Does nothing if the letter was redriven meanwhile.
                self.cluster.write(Action(Verb.DELETE, self._ref(self._kept[0])), self.manager)
                del self._kept[0]
        return Outcome(OutcomeKind.DONE, Reason.DEAD_LETTER_STORED, message, actions=1)

    def _stored(self) -> list[str]:
        """Return the names of the stored letters, oldest first."""
        config_maps = self.cluster.list(CONFIGMAPS, self.namespace, labels=dead_letters.SELECTOR)
        found = [body["metadata"] for body in config_maps]
        letters = sorted((of.get("creationTimestamp", ""), of["name"]) for of in found)
        return [name for _, name in letters if name.startswith(dead_letters.PREFIX)]

    def _ref(self, name: str) -> ObjectRef:
        return ObjectRef(CONFIGMAPS.api_version, CONFIGMAPS.kind, self.namespace, name)

    def _report(
        self, headers: Mapping[str, str], letter: DeadLetter | None, outcome: Outcome, seconds: float
    ) -> None:
        self.metrics.answered(None, outcome, seconds, self._clock())
        fields = logs.claimed(headers)
        if letter is not None:
            self.metrics.dead_letter_stored(letter.code)
            fields = {"event": letter.event["id"], "type": letter.event["type"], "about": letter.about}
            fields |= {"dead_letter": letter.name, "failed": letter.function, "code": letter.code}
        logs.outcome_line(NAME, outcome, **fields, duration_ms=round(seconds * 1000, 1))

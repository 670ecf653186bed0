"""Several functions behind one server: each at its path, with the metrics and readiness that it has alone."""

from __future__ import annotations

import gc
import json
import logging
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import Client, TestResponse

from muster.cluster.errors import Unavailable
from muster.cluster.permissions import may
from muster.objects.resources import JOBS, PODS
from muster.policy.model import Plan
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.served import GARBAGE_THRESHOLDS, ServedFunctions, prepare_process
from muster.runtime.sharing.workers import Workers
from tests.unit.runtime.fakes import BODY, DONE, NOW, FakeCluster, a_step, an_event
from tests.unit.runtime.http.test_readiness import Authorizer

STEPS = ("patch_pods", "emit_conditions")


def served(*clusters: Any, settings: Settings | None = None, **parts: Any) -> ServedFunctions:
    """Both steps, each with a cluster of its own."""
    used = settings or Settings()
    workers = Workers(used.workers, used.waiting)
    return ServedFunctions(
        *(
            (Handler(a_step(name=name, **parts), cluster, used, lambda: NOW, workers=workers), cluster)
            for name, cluster in zip(STEPS, clusters or (FakeCluster(), FakeCluster()), strict=True)
        )
    )


def send(functions: ServedFunctions, path: str, pod: str = "llama-0", **change: Any) -> TestResponse:
    """Send an event about a pod to a path."""
    headers, _ = an_event(**change)
    body = {**BODY, "metadata": {**BODY["metadata"], "name": pod}}
    return Client(functions.app).post(path, headers=headers, data=json.dumps(body))


def get(functions: ServedFunctions, path: str) -> TestResponse:
    """Get a path."""
    return Client(functions.app).get(path)


@pytest.mark.parametrize("path", ["/emit-conditions", "/emit-conditions/"])
def test_an_event_goes_to_the_step_of_its_path(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """It writes as its own field manager, and its log line and reply carry its name."""
    clusters = FakeCluster(), FakeCluster()
    with caplog.at_level(logging.INFO, "muster"):
        answer = send(served(*clusters), path)
    assert (answer.status_code, answer.headers["ce-type"]) == (200, "dev.muster.emit_conditions.gates_lifted")
    assert clusters[0].calls == []
    assert "create pods muster-emit-conditions" in clusters[1].calls
    assert [record.__dict__["fields"]["step"] for record in caplog.records] == ["emit_conditions"]


@pytest.mark.parametrize(
    ("path", "status"), [("/", 405), ("/resize-gang", 404), ("/patch-pods/more", 404), ("/patch_pods", 404)]
)
def test_another_path_takes_no_event(path: str, status: int) -> None:
    """No step runs, and the answer says where events are accepted."""
    clusters = FakeCluster(), FakeCluster()
    answer = send(served(*clusters), path)
    assert answer.status_code == status
    assert "POST /" in answer.text
    assert [cluster.calls for cluster in clusters] == [[], []]


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/patch-pods", 200), ("/emit-conditions", 404)])
def test_a_function_alone_is_at_the_root_too(path: str, status: int) -> None:
    """As in a container of its own; its path works all the same."""
    cluster = FakeCluster()
    alone = ServedFunctions((Handler(a_step(), cluster, Settings(), lambda: NOW), cluster))
    assert (alone.name, send(alone, path).status_code) == ("patch_pods", status)


def test_metrics_of_all_are_one_text() -> None:
    """Each metric once with the samples of both functions; those of the process once; and each step's own."""
    functions = served()
    send(functions, "/patch-pods")
    send(functions, "/emit-conditions", type="com.example.order")
    text = get(functions, "/metrics").text
    declared = [line for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(declared) == len(set(declared))
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    of_process = [one for one in samples if one.name == "process_resident_memory_bytes"]
    assert len(of_process) == 1
    answered = {
        one.labels["function"]: one.labels["outcome"] for one in samples if one.name == "muster_events_total"
    }
    assert answered == {"patch_pods": "done", "emit_conditions": "nothing"}
    own = get(functions, "/patch-pods/metrics").text
    assert 'function="patch_pods"' in own
    assert 'function="emit_conditions"' not in own


def test_readiness_names_the_function_that_lacks_a_permission() -> None:
    """All are ready; the step's own probe is about that step alone."""
    functions = served(
        Authorizer("patch pods"), Authorizer(), permissions=may("get patch", PODS) | may("list", JOBS)
    )
    answer = get(functions, "/health/readiness")
    assert answer.status_code == 200
    assert answer.text.startswith("patch-pods: may not patch pods")
    assert "emit-conditions" not in answer.text
    assert get(functions, "/emit-conditions/health/readiness").text == "OK\n"


def test_nothing_is_ready_without_the_api_server() -> None:
    """The message stands there once, although every function asked."""
    away = Unavailable("connection refused")
    answer = get(served(FakeCluster(on_read=away), FakeCluster(on_read=away)), "/health/readiness")
    assert (answer.status_code, answer.text) == (503, "Unavailable: connection refused\n")
    assert get(served(), "/health/liveness").status_code == 200


def test_functions_share_their_workers() -> None:
    """Two functions do no more for one namespace at once than one does, so memory and fairness hold."""
    at_once = 0
    most = 0
    lock = threading.Lock()

    def slow(_cluster: Any, plan: Plan, _manager: str) -> Plan:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        with lock:
            at_once -= 1
        return plan

    functions = served(settings=Settings(workers=2), plan=lambda _inputs, _now: DONE, execute=slow)
    with ThreadPoolExecutor(12) as pool:
        paths = [("/patch-pods", "/emit-conditions")[number % 2] for number in range(12)]
        pods = [f"pod-{number}" for number in range(12)]
        answers = list(pool.map(lambda path, pod: send(functions, path, pod).status_code, paths, pods))
    assert set(answers) == {200}
    assert most == 2


def test_connected_functions_share_workers_and_have_their_own_names() -> None:
    """To the API server each is itself: its client has its field manager as user agent."""
    steps = [a_step(name=name) for name in STEPS]
    functions = ServedFunctions.connected(steps, Settings(api_server="http://127.0.0.1:1"), dead_letters=True)
    handlers = [one for one in functions._receivers if isinstance(one, Handler)]
    assert len({id(handler._workers) for handler in handlers}) == 1
    assert [one.name for one in functions._receivers] == [*STEPS, "dead_letter"]
    agents = [handler._cluster._cluster.user_agent for handler in handlers]  # type: ignore[attr-defined]
    assert agents == ["muster-patch-pods", "muster-emit-conditions"]


@pytest.mark.thorough
def test_a_process_of_functions_opens_many_files_and_collects_little_garbage() -> None:
    """A container often begins with 1,024 files, and a process with all functions has more connections."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    thresholds = gc.get_threshold()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
        prepare_process()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert gc.get_threshold() == GARBAGE_THRESHOLDS
        assert gc.get_freeze_count() > len(gc.get_objects())
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def test_the_end_waits_for_all_functions() -> None:
    """An event in work at the second function is finished before the process ends."""
    begun, may_end = threading.Event(), threading.Event()

    def slow(_cluster: Any, plan: Plan, _manager: str) -> Plan:
        begun.set()
        assert may_end.wait(5)
        return plan

    functions = served(execute=slow)
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(send, functions, "/emit-conditions")
        assert begun.wait(5)
        ended = pool.submit(functions.wait_until_idle)
        time.sleep(0.05)
        assert not ended.done()
        may_end.set()
        ended.result(5)
        assert answer.result(5).status_code == 200


def test_refusals_are_the_steps_own() -> None:
    """An unreadable event is answered with the reason, as by a function alone."""
    answer = Client(served().app).post("/patch-pods", data=b"no event", content_type="text/plain")
    assert (answer.status_code, json.loads(answer.data)["reason"]) == (400, "UnreadableEvent")


def test_events_of_all_functions_wait_for_the_loop_of_the_process() -> None:
    """The server counts its requests for the loop that their workers know."""
    served = ServedFunctions.connected(
        [a_step(), a_step(name="other")], Settings(api_server="http://127.0.0.1:9")
    )
    handlers = [one for one in served._receivers if isinstance(one, Handler)]
    assert [handler._workers.loop for handler in handlers] == [served.loop] * 2

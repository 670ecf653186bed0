"""What a person typed wrong is one line on standard error and exit status 2."""

from __future__ import annotations

import pytest
import yaml

from muster.simulator.apiserver import ApiServer
from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import a_job, an_event

EVENT = ("plan", "create_workload", "--event")
OBJECTS = ("--objects", "{objects}")
CASES: list[tuple[list[str], list[str]]] = [
    (["lnit"], ["lnit", "Did you mean 'lint'? See muster --help"]),
    (["get", "-w", "-o", "json"], ["-w", "-o json"]),
    (["status", "-A", "-n", "a"], ["-A"]),
    (["status", "--kubeconfig", "none"], ["none"]),
    (["plan", "wokload", "--event", "{event}", *OBJECTS], ["wokload"]),
    ([*EVENT, "none.json", *OBJECTS], ["none.json"]),
    ([*EVENT, "{event}", "--objects", "{broken}"], ["broken.json:2:1"]),
    ([*EVENT, "{event}", "--objects", "{wrong}"], ["parallelism"]),
    ([*EVENT, "{event}", *OBJECTS, "--moment", "x"], ["'x'"]),
    (["record", "e.jsonl", "--for", "soon"], ["--for", "soon"]),
    (["record", "e.json"], ["e.json", ".jsonl.gz"]),
    (["record", "{recorded}"], ["e.jsonl", "already exists"]),
    (["run", "--story", "fairy"], ["fairy"]),
    (["new-step", "Up!", "--on", "Job"], ["see muster new-step --help"]),
    (["explain", "node/a/b"], ["node/a/b"]),
    (["lint", "nowhere"], ["nowhere"]),
]


@pytest.mark.parametrize(("arguments", "names"), CASES)
def test_bad_input_is_one_line(muster: Muster, filed: Filed, arguments: list[str], names: list[str]) -> None:
    """It names what is wrong, and nothing is printed on standard output."""
    files = {
        "event": filed("event.json", an_event()),
        "objects": filed("objects.yaml", a_job()),
        "broken": filed("broken.json", '{"a": '),
        "recorded": filed("e.jsonl", ""),
        "wrong": filed("wrong.yaml", yaml.safe_dump(a_job(parallelism="many"))),
    }
    result = muster(*(argument.format(**files) for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("muster: ")
    assert_names(line, *names)


def test_a_cluster_that_does_not_answer_is_one_line(muster: Muster, filed: Filed) -> None:
    """Before anything is written."""
    with ApiServer() as server:
        kubeconfig = filed("kubeconfig", server.kubeconfig())
    result = muster("record", f"{kubeconfig}.jsonl", "--kubeconfig", kubeconfig)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)

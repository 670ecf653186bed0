"""Bad input is answered with one line that says where and what, and exit status 2."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.unit.cli.conftest import Filed, Muster
from tests.unit.cli.sample import a_capture, a_job, a_namespace, an_event, as_yaml

GOOD = as_yaml(a_namespace(), a_job())


def without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """The same without one entry."""
    return {key: value for key, value in mapping.items() if key != name}


def headless(name: str) -> dict[str, Any]:
    """A captured request without one header."""
    capture = a_capture(an_event())
    return {**capture, "headers": without(capture["headers"], name)}


def said(result: Result) -> str:
    """The one line on standard error, without the folder of the files."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("muster: ")
    return line.removeprefix("muster: ")


BAD_EVENTS = [
    pytest.param(
        "event.json",
        without(an_event(), "id"),
        "event.json: id: is missing",
        id="no id in a structured event",
    ),
    pytest.param("event.json", headless("Ce-Id"), "event.json: ce-id: is missing", id="no ce-id"),
    pytest.param(
        "event.json",
        an_event(specversion="0.3"),
        'event.json: specversion: must be "1.0", not "0.3"',
        id="a specversion that is not 1.0",
    ),
    pytest.param(
        "event.json", '{"specversion": "1.0",', "event.json: is not JSON: ", id="JSON that is broken off"
    ),
    pytest.param("event.yaml", "a: [1", "event.yaml:2:1: is not YAML: ", id="YAML that is broken off"),
    pytest.param("event.json", [], "event.json: has no event in it", id="an empty batch"),
    pytest.param("event.json", "3", "event.json: an event is a JSON object", id="a number"),
    pytest.param(
        "event.json",
        [an_event(), an_event()],
        "event.json: holds 2 events; plan takes one, replay takes many",
        id="two events",
    ),
    pytest.param(
        "event.json",
        {"headers": {"Content-Type": "application/cloudevents-batch+json"}, "body": [an_event()]},
        "event.json: content-type: a batch of events is not accepted",
        id="a captured batch, which no function accepts",
    ),
    pytest.param(
        "event.json", {"headers": 7, "body": ""}, "event.json: headers: must be an object", id="no headers"
    ),
    pytest.param(
        "event.json",
        an_event(without(a_job(), "metadata")),
        "event.json: data.metadata: is missing",
        id="an object without metadata",
    ),
    pytest.param(
        "event.json",
        an_event({**a_job(), "metadata": {"namespace": "team"}}),
        "event.json: data.metadata.name: is missing",
        id="an object without a name",
    ),
    pytest.param(
        "event.json",
        an_event(a_job(parallelism="many")),
        "event.json: data: spec.parallelism: ",
        id="a field of the wrong type",
    ),
]


@pytest.mark.parametrize(("name", "content", "line"), BAD_EVENTS)
def test_a_bad_event_is_told_with_its_place(
    muster: Muster, filed: Filed, tmp_path: Path, name: str, content: Any, line: str
) -> None:
    """File, path in it, and what is wrong."""
    event, cluster = filed(name, content), filed("cluster.yaml", GOOD)
    result = muster("plan", "create_workload", "--event", event, "--objects", cluster)
    assert said(result).startswith(f"{tmp_path}/{line}")


BAD_OBJECTS = [
    pytest.param(without(a_job(), "kind"), "c.yaml: document 1: kind: is missing", id="no kind"),
    pytest.param(without(a_job(), "metadata"), "c.yaml: document 1: metadata: is missing", id="no metadata"),
    pytest.param(
        {"kind": "List", "items": [a_job(), {**a_job(), "metadata": {}}]},
        "c.yaml: document 1: items[1]: metadata.name: is missing",
        id="no name, deep in a List",
    ),
    pytest.param("a: b: c", "c.yaml:1:5: is not YAML", id="no YAML"),
    pytest.param("just words", "c.yaml: document 1: is no Kubernetes object", id="words"),
]


@pytest.mark.parametrize(("content", "line"), BAD_OBJECTS)
def test_bad_objects_are_told_with_their_place(
    muster: Muster, filed: Filed, tmp_path: Path, content: Any, line: str
) -> None:
    """File, document, item, path."""
    result = muster(
        "plan",
        "create_workload",
        "--event",
        filed("e.json", an_event()),
        "--objects",
        filed("c.yaml", content),
    )
    assert said(result).startswith(f"{tmp_path}/{line}")


def test_an_object_of_the_wrong_type_is_told_by_its_name(muster: Muster, filed: Filed) -> None:
    """Which of the objects, which field."""
    event = filed("e.json", an_event(a_job()))
    cluster = filed("c.yaml", as_yaml(a_namespace(), a_job(parallelism="many")))
    result = muster("plan", "create_workload", "--event", event, "--objects", cluster)
    assert said(result).startswith("Job team/sweep: spec.parallelism: ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(
            ["plan", "make_coffee", "--event", "e", "--objects", "c"],
            "no function is called 'make_coffee'; there are create_pod_groups, create_workload, ",
            id="a function that does not exist",
        ),
        pytest.param(
            ["plan", "patch_pods", "--event", "nowhere.json", "--objects", "c"],
            "nowhere.json: No such file",
            id="an event file that does not exist",
        ),
        pytest.param(
            ["replay", "nowhere.jsonl"], "nowhere.jsonl: No such file", id="a stream that does not exist"
        ),
        pytest.param(
            ["run", "--story", "romance"],
            "no story is called 'romance'; there are torch, ",
            id="no such story",
        ),
        pytest.param(
            ["run", "--kubeconfig", "nowhere", "--story", "torch"],
            "--story: stories are told on the embedded cluster",
            id="a story on a real cluster",
        ),
        pytest.param(
            ["run", "--kubeconfig", "nowhere"], "nowhere: No such file", id="a kubeconfig that does not exist"
        ),
    ],
)
def test_bad_arguments_are_told_in_one_line(muster: Muster, arguments: list[str], line: str) -> None:
    """What is wrong, and where there is a choice, what there is."""
    assert said(muster(*arguments)).startswith(line)


def test_an_unknown_moment_is_told_with_those_there_are(muster: Muster, filed: Filed) -> None:
    """Names are in quotes, since they may hold commas."""
    recording = filed("r.yaml", as_yaml({"kind": "List", "moment": "before, long", "items": []}))
    event = filed("e.json", an_event())
    result = muster("plan", "patch_pods", "--event", event, "--objects", recording, "--moment", "after")
    assert said(result) == "no moment 'after'; there are 'before, long'"


def test_a_time_that_is_none_is_told(muster: Muster, filed: Filed) -> None:
    """With an example of one."""
    event, cluster = filed("e.json", an_event()), filed("c.yaml", GOOD)
    result = muster("plan", "patch_pods", "--event", event, "--objects", cluster, "--now", "noon")
    assert said(result) == "--now noon: is no time such as 2026-11-21T08:17:25Z"


def test_a_file_that_cannot_be_unpacked_is_told(muster: Muster, tmp_path: Path) -> None:
    """A name in .gz promises gzip."""
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(b"{}")[:9])
    assert (
        said(muster("replay", str(tmp_path / "e.jsonl.gz"))) == f"{tmp_path}/e.jsonl.gz: cannot be unpacked"
    )

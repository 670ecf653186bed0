"""Commands report bad input in one line with file and field, and exit with 2."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.unit.cli.conftest import Filed, Muster, assert_names, without_folder
from tests.unit.cli.sample import a_capture, a_job, a_namespace, an_event, as_yaml

GOOD = as_yaml(a_namespace(), a_job())


def without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """The same without one entry."""
    return {key: value for key, value in mapping.items() if key != name}


def headless(name: str) -> dict[str, Any]:
    """A captured request without one header."""
    capture = a_capture(an_event())
    return {**capture, "headers": without(capture["headers"], name)}


def refusal(result: Result) -> str:
    """Return the one line on standard error."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("muster: ")
    return line


BAD_EVENTS = [
    pytest.param(
        "event.json", without(an_event(), "id"), ["event.json", "id"], id="no id in a structured event"
    ),
    pytest.param("event.json", headless("Ce-Id"), ["event.json", "ce-id"], id="no ce-id"),
    pytest.param(
        "event.json",
        an_event(specversion="0.3"),
        ["event.json", "specversion", "1.0", "0.3"],
        id="a specversion that is not 1.0",
    ),
    pytest.param("event.json", '{"specversion": "1.0"', ["event.json"], id="JSON that is broken off"),
    pytest.param("event.yaml", "a: [1", ["event.yaml:2:1"], id="YAML that is broken off"),
    pytest.param("event.json", [], ["event.json"], id="an empty batch"),
    pytest.param("event.json", "3", ["event.json"], id="a number"),
    pytest.param("event.json", [an_event(), an_event()], ["event.json", "2"], id="two events"),
    pytest.param(
        "event.json",
        {"headers": {"Content-Type": "application/cloudevents-batch+json"}, "body": [an_event()]},
        ["event.json", "content-type"],
        id="a captured batch, which no function accepts",
    ),
    pytest.param("event.json", {"headers": 7, "body": ""}, ["event.json", "headers"], id="no headers"),
    pytest.param(
        "event.json",
        an_event(without(a_job(), "metadata")),
        ["event.json", "data.metadata"],
        id="an object without metadata",
    ),
    pytest.param(
        "event.json",
        an_event({**a_job(), "metadata": {"namespace": "team"}}),
        ["event.json", "data.metadata.name"],
        id="an object without a name",
    ),
    pytest.param(
        "event.json",
        an_event(a_job(parallelism="many")),
        ["event.json", "spec.parallelism"],
        id="a field of the wrong type",
    ),
]


@pytest.mark.parametrize(("name", "content", "place"), BAD_EVENTS)
def test_a_bad_event_is_reported_with_its_place(
    muster: Muster, filed: Filed, tmp_path: Path, name: str, content: Any, place: list[str]
) -> None:
    """File, path in it, and what is wrong."""
    event, cluster = filed(name, content), filed("cluster.yaml", GOOD)
    line = refusal(muster("plan", "create_workload", "--event", event, "--objects", cluster))
    line = without_folder(line, tmp_path)
    assert_names(line, *place)


BAD_OBJECTS = [
    pytest.param(without(a_job(), "kind"), ["c.yaml", "1", "kind"], id="no kind"),
    pytest.param(without(a_job(), "metadata"), ["c.yaml", "1", "metadata"], id="no metadata"),
    pytest.param(
        {"kind": "List", "items": [a_job(), {**a_job(), "metadata": {}}]},
        ["c.yaml", "1", "items[1]", "metadata.name"],
        id="no name, deep in a List",
    ),
    pytest.param("a: b: c", ["c.yaml:1:5"], id="no YAML"),
    pytest.param("just words", ["c.yaml", "1"], id="words"),
]


@pytest.mark.parametrize(("content", "place"), BAD_OBJECTS)
def test_bad_objects_are_reported_with_their_place(
    muster: Muster, filed: Filed, tmp_path: Path, content: Any, place: list[str]
) -> None:
    """File, document, item, path."""
    event, cluster = filed("e.json", an_event()), filed("c.yaml", content)
    line = refusal(muster("plan", "create_workload", "--event", event, "--objects", cluster))
    line = without_folder(line, tmp_path)
    assert_names(line, *place)


def test_an_invalid_object_is_reported_by_its_name(muster: Muster, filed: Filed) -> None:
    """Which of the objects, which field."""
    event = filed("e.json", an_event(a_job()))
    cluster = filed("c.yaml", as_yaml(a_namespace(), a_job(parallelism="many")))
    line = refusal(muster("plan", "create_workload", "--event", event, "--objects", cluster))
    assert_names(line, "Job team/sweep", "spec.parallelism")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(
            ["plan", "make_coffee", "--event", "e", "--objects", "c"],
            ["make_coffee", "create_pod_groups", "create_workload"],
            id="a function that does not exist",
        ),
        pytest.param(
            ["plan", "patch_pods", "--event", "nowhere.json", "--objects", "c"],
            ["nowhere.json"],
            id="an event file that does not exist",
        ),
        pytest.param(["replay", "nowhere.jsonl"], ["nowhere.jsonl"], id="a stream that does not exist"),
        pytest.param(["run", "--story", "romance"], ["romance", "torch"], id="no such story"),
        pytest.param(
            ["run", "--kubeconfig", "nowhere", "--story", "torch"],
            ["--story"],
            id="a story on a real cluster",
        ),
        pytest.param(["run", "--kubeconfig", "nowhere"], ["nowhere"], id="a kubeconfig that does not exist"),
    ],
)
def test_bad_arguments_are_reported_in_one_line(
    muster: Muster, arguments: list[str], names: list[str]
) -> None:
    """What is wrong, and where there is a choice, what there is."""
    line = refusal(muster(*arguments))
    assert_names(line, *names)


OVERLAYS = [
    pytest.param({}, ["overlay/kustomization.yaml"], id="an empty folder"),
    pytest.param({"kustomization.yaml": "a: [1"}, ["kustomization.yaml", "YAML"], id="broken YAML"),
    pytest.param({"kustomization.yaml": "[]"}, ["kustomization.yaml"], id="a list"),
    pytest.param({"kustomization.yaml": "resources: []"}, ["overlay", "no objects"], id="nothing in it"),
    pytest.param({"kustomization.yaml": "resources: [no.yaml]"}, ["no.yaml"], id="a missing resource"),
    pytest.param(
        {"kustomization.yaml": "resources: [a.yaml]", "a.yaml": "kind: Pod"},
        ["a.yaml", "metadata"],
        id="a document that is no object",
    ),
]


@pytest.mark.parametrize(("files", "names"), OVERLAYS)
def test_an_invalid_overlay_is_reported(
    muster: Muster, tmp_path: Path, files: dict[str, str], names: list[str]
) -> None:
    """By `check` and `record` in the same line, before a cluster is asked."""
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    for name, text in files.items():
        (overlay / name).write_text(text)
    line = refusal(muster("check", "--overlay", str(overlay)))
    assert line == refusal(muster("record", str(tmp_path / "e.jsonl"), "--sources", str(overlay)))
    line = without_folder(line, tmp_path)
    assert_names(line, *names)


def test_a_manifest_that_muster_did_not_release_is_reported(
    muster: Muster, filed: Filed, tmp_path: Path
) -> None:
    """An empty file, one of something else, one that is not YAML, and one that does not exist."""
    files = {"empty": "", "pod.yaml": "{kind: Pod, metadata: {name: a}}", "text": "[a]", "broken": "a: [1"}
    for path in (*(filed(name, text) for name, text in files.items()), str(tmp_path / "nowhere")):
        line = without_folder(refusal(muster("check", "--overlay", path)), tmp_path)
        assert_names(line, Path(path).name)


def test_an_unknown_moment_is_reported_with_the_known_moments(muster: Muster, filed: Filed) -> None:
    """Names are in quotes, since they may hold commas."""
    recording = filed("r.yaml", as_yaml({"kind": "List", "moment": "before, long", "items": []}))
    event = filed("e.json", an_event())
    result = muster("plan", "patch_pods", "--event", event, "--objects", recording, "--moment", "after")
    line = refusal(result)
    assert_names(line, "'after'", "'before, long'")


def test_fifty_moments_are_listed(muster: Muster, filed: Filed) -> None:
    """The others are counted."""
    moments = [{"kind": "List", "moment": f"m{number}", "items": []} for number in range(1, 61)]
    recording, event = filed("r.yaml", as_yaml(*moments)), filed("e.json", an_event())
    result = muster("plan", "patch_pods", "--event", event, "--objects", recording, "--moment", "after")
    line = refusal(result)
    assert_names(line, "'m50'", "10 more")
    assert "'m51'" not in line


def test_long_names_of_moments_are_cut(muster: Muster, filed: Filed) -> None:
    """In the error about one that is not there, and in those about what one lacks and another has."""
    lacking, having = "a" * 10_000, "b" * 10_000
    moments = [
        {"kind": "List", "moment": lacking, "items": [a_namespace()]},
        {"kind": "List", "moment": having, "items": [a_job()]},
    ]
    recording, event = filed("r.yaml", as_yaml(*moments)), filed("e.json", an_event())
    arguments = ("plan", "patch_pods", "--event", event, "--objects", recording)
    line = refusal(muster(*arguments, "--moment", "after"))
    assert_names(line, "a" * 100, "b" * 100)
    assert len(line) < 300
    lines = muster(*arguments, "--moment", lacking).stderr
    assert_names(lines, "a" * 100, "b" * 100)
    assert len(lines) < 400


def test_an_invalid_time_is_reported(muster: Muster, filed: Filed) -> None:
    """With an example of one."""
    event, cluster = filed("e.json", an_event()), filed("c.yaml", GOOD)
    result = muster("plan", "patch_pods", "--event", event, "--objects", cluster, "--now", "noon")
    line = refusal(result)
    assert_names(line, "--now", "noon", "2026-11-21T08:17:25Z")


def test_a_file_that_cannot_be_unpacked_is_reported(muster: Muster, tmp_path: Path) -> None:
    """A name in .gz promises gzip."""
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}")[:9])
    line = refusal(muster("replay", str(path)))
    assert_names(line, str(path))


def test_a_file_of_aliases_is_refused(muster: Muster, filed: Filed) -> None:
    """A few hundred bytes would take gigabytes."""
    levels = "\n".join(f"v{n}: &v{n} [{', '.join([f'*v{n - 1}'] * 9)}]" for n in range(1, 12))
    world = filed("world.yaml", f"v0: &v0 x\n{levels}")
    events = filed("events.jsonl", an_event())
    for command in (("replay", events, "--objects", world), ("explain", world)):
        assert_names(refusal(muster(*command)), "world.yaml", "aliases")


@pytest.mark.parametrize("entry", [
    pytest.param({"headers": {"\x7f" * 100_000: 1}}, id="a header's name"),
    pytest.param({"headers": {}, "\x7f" * 100_000: 1}, id="an unknown field"),
    pytest.param({"headers": {}, **{f"field {n}": n for n in range(10_000)}}, id="many unknown fields"),
])  # fmt: skip
def test_errors_are_short(muster: Muster, tmp_path: Path, entry: dict[str, Any]) -> None:
    """Keys of a file can have megabytes."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps([entry], ensure_ascii=False))
    line = refusal(muster("replay", str(path)))
    assert line.startswith(f"muster: {path}[0]")
    assert len(line) < 25_000

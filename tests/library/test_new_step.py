"""`muster new-step` writes a step that works as it is, for every event that it offers."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from muster import library
from muster.cli import main
from muster.cli.new_step import REACTIONS, owner_of
from muster.data import EVENTING
from muster.simulator.apiserver.selectors import labels_matcher
from muster.simulator.broker import CloudEvent, Wiring
from muster.simulator.overlays import built, load, of_kind
from muster.simulator.source import SourceSpec
from muster.testing import Case, change, check_laws, check_manifests, load_step, plan_of
from muster.testing.cases import envelope

each_event = pytest.mark.parametrize("event", REACTIONS)


def new_step(*arguments: str) -> Result:
    """Run the command in the current folder."""
    return CliRunner().invoke(main, ["new-step", *arguments])


@pytest.fixture(name="folder")
def _folder(event: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new step for an event."""
    monkeypatch.chdir(tmp_path)
    result = new_step("my-step", "--on", event)
    assert result.exit_code == 0, result.output
    return tmp_path / "my_step"


@each_event
def test_it_acts_on_the_recorded_event_and_keeps_every_law(event: str, folder: Path) -> None:
    """The case is about an event of the kind that was asked for, and the plan is written beside it."""
    step, case = load_step(folder), Case.read(folder / "tests/case")
    planned = plan_of(step, case)
    assert planned.reason == "Marked"
    assert planned.as_yaml() == (folder / "tests/case/plan.yaml").read_text()
    assert planned.actions[0].target.kind == REACTIONS[event].resource.kind
    check_laws(step, case)


@each_event
def test_its_trigger_lets_the_event_through_and_others_not(event: str, folder: Path) -> None:
    """By the filter, which names the API group: other projects have kinds of the same names."""
    check_manifests(folder)
    (trigger,) = of_kind(load(folder), "Trigger")
    brokers = of_kind(load(), "Broker")
    (wired,) = Wiring.from_manifests([*brokers, trigger]).triggers
    reaction, case = REACTIONS[event], Case.read(folder / "tests/case")
    attributes = CloudEvent.from_http(case.event.headers, case.event.body).attributes
    assert wired.passes(attributes)
    assert wired.passes({"type": "dev.muster.sweep"})
    assert not wired.passes({**attributes, "type": "dev.knative.apiserver.resource.delete"})
    stranger = {"apiVersion": "example.com/v1", "kind": reaction.resource.kind, "metadata": {"name": "a"}}
    other = change(stranger, reaction.change)
    assert not wired.passes(CloudEvent.from_http(other.headers, other.body).attributes)


@each_event
def test_a_source_sends_the_event(event: str, folder: Path) -> None:
    """Muster's own source, or the step's: it watches the kind, with labels that the recorded object has."""
    obj, kind = envelope(Case.read(folder / "tests/case").event)["data"], REACTIONS[event].resource.kind
    specs = [SourceSpec.from_manifest(one) for one in of_kind([*load(), *load(folder)], "ApiServerSource")]
    watched = [one for spec in specs for one in spec.kinds if one.resource.kind == kind]
    matchers = [labels_matcher(one.selector) for one in watched]
    assert any(matches is None or matches(obj) for matches in matchers)


@each_event
def test_it_imports_public_names_only(event: str, folder: Path) -> None:
    """Of Muster; so a step outlives what is private."""
    assert event
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muster"):
                assert node.module in {"muster", "muster.testing"}, path
                if node.module == "muster":
                    assert {alias.name for alias in node.names} <= set(library.__all__)


def test_its_commands_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a shell."""
    monkeypatch.chdir(tmp_path)
    result = new_step("my-step", "--on", "pod-bound")
    commands = [shlex.split(line, comments=True) for line in result.output.splitlines()[-3:]]
    event, objects = "my_step/tests/case/event.json", "my_step/tests/case/cluster.yaml"
    assert commands == [
        ["pytest", "my_step"],
        ["muster", "plan", "my_step", "--event", event, "--objects", objects],
        ["muster", "run", "--overlay", "my_step"],
    ]
    assert (tmp_path / event).exists()


@pytest.mark.parametrize("overlay", sorted(path.stem for path in (EVENTING / "built").iterdir()))
def test_its_objects_replace_none_of_an_overlay(overlay: str) -> None:
    """`kubectl apply -k` of a step would end a function, or give a role other rights."""
    names = {manifest["metadata"]["name"] for manifest in load(built(overlay))}
    assert len(names) > len(of_kind(load(), "Service"))
    assert {name for name in names if owner_of(name) != "Muster"} == set()
    assert owner_of("label-racks") == ""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["Label Racks", "--on", "pod-bound"], id="a name that no Service can have"),
        pytest.param(["patch-pods", "--on", "pod-bound"], id="a step of Muster"),
        pytest.param(["dead_letter", "--on", "pod-bound"], id="a function of Muster"),
        pytest.param(["cluster-admin", "--on", "pod-bound"], id="a role of Kubernetes"),
        pytest.param(["a" * 60, "--on", "pod-bound"], id="a name that is too long"),
        pytest.param(["there", "--on", "pod-bound"], id="a folder that exists"),
        pytest.param(["one", "--on", "pod-eaten"], id="an event that is not offered"),
        pytest.param(["one"], id="no event"),
    ],
)
def test_bad_arguments_are_reported_in_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written, and nothing is overwritten."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.rglob("*"))
    result = new_step(*arguments)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert sorted(tmp_path.rglob("*")) == before

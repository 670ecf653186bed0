"""No value of a wrong type in a file is a bug of `lint`, `explain`, `plan`, `replay`, `apiserver`."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from muster.objects import yaml_files
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers.fixtures import RUNTIMES
from muster.simulator.manifests import ManifestError, load
from muster.simulator.typed import type_fault
from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import a_job

Object = dict[str, Any]
FieldPath = tuple[str | int, ...]
SWEEP = {"specversion": "1.0", "type": "dev.muster.sweep", "source": "test", "id": "1"}
WRONG: list[Any] = [None, "", -1, 2**63, True, [], {}, [None], [{}], {"a": None}, "{{", "1e400"]


def a_runtime(spec: Any) -> Object:
    """A runtime of a namespace."""
    metadata = {"name": "staged", "namespace": "team", "uid": "1"}
    version = "trainer.kubeflow.org/v1alpha1"
    return {"apiVersion": version, "kind": "TrainingRuntime", "metadata": metadata, "spec": spec}


def _objects() -> list[Object]:
    files = [*sorted((EVENTING / "examples").glob("*.yaml")), EVENTING / "examples/label_racks/tests/case"]
    texts = [(path / "cluster.yaml" if path.is_dir() else path).read_text() for path in files]
    documents = [document for text in texts for document in yaml_files.load_all(text)]
    return [body for document in documents for body in document.get("items", [document])]


OBJECTS = _objects()


def _paths(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Every field of an object, and the first three entries of its lists."""
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value[:3] if isinstance(value, list) else ())
    )
    for key, entry in entries:
        yield from _paths(entry, (*path, key))


def _changed(seed: int) -> list[Object]:
    """Some objects, of which a field or two have other values."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible choice
    objects = copy.deepcopy(chance.sample(OBJECTS, 3))
    for body in objects[: chance.choice([1, 2])]:
        *parents, last = chance.choice(list(_paths(body)))
        at: Any = body
        for key in parents:
            at = at[key]
        at[last] = copy.deepcopy(chance.choice(WRONG))
    return objects


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["lint", "explain", "plan", "replay"])
def test_any_value_is_read_or_reported(command: str, muster: Muster, filed: Filed) -> None:
    """Three objects at a time, of which one or two have a field with a value that nobody means."""
    event = filed("sweep.json", SWEEP)
    for seed in range(40 if command == "replay" else 150):
        objects = filed("a.yaml", yaml.dump_all(_changed(seed), Dumper=yaml_files.SafeDumper))
        arguments = {
            "plan": ["mark_runtime", "--event", event, "--objects", objects],
            "replay": [event, "--objects", objects],
        }.get(command, [objects])
        result = muster(command, *arguments)
        assert result.exit_code in {0, 1, 2}, (seed, result.stderr)


def replayed(muster: Muster, filed: Filed, body: Object, options: list[str]) -> Any:
    """The result of a replay of an object, which with two moments is in the second."""
    moments = [
        {"kind": "List", "apiVersion": "v1", "moment": name, "items": items}
        for name, items in (("a", [a_job()]), ("b", [body]))
    ]
    objects = moments if "--moment" in options else [body]
    file = filed("a.yaml", yaml.safe_dump_all(objects))
    return muster("replay", filed("sweep.json", SWEEP), "--objects", file, *options)


@pytest.mark.parametrize("labels", [["a"], "a", 3, True])
@pytest.mark.parametrize("options", [["--drop-groups"], ["--moment", "a", "--moment", "b"]])
def test_labels_of_a_group_of_a_wrong_type_are_named(
    options: list[str], labels: Any, muster: Muster, filed: Filed
) -> None:
    """Though Muster's groups are left out, and those of a later moment replaced."""
    metadata = {"name": "a", "namespace": "team", "uid": "1", "labels": labels}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": {}}
    result = replayed(muster, filed, group, options)
    assert result.exit_code == 2
    assert_names(result.stderr, "PodGroup team/a: metadata.labels")


@pytest.mark.parametrize("options", [[], ["--moment", "a", "--moment", "b"]])
@pytest.mark.parametrize("changed", [{"status": ["a"]}, {"metadata": {"uid": ["a"]}}])
def test_a_field_of_an_owner_of_a_wrong_type_is_named(
    changed: Object, options: list[str], muster: Muster, filed: Filed
) -> None:
    """Also one that no function reads, but the comparison of moments or the summary does."""
    metadata = {"name": "sweep", "namespace": "team", **changed.get("metadata", {})}
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **changed, "metadata": metadata}
    result = replayed(muster, filed, jobset, options)
    assert result.exit_code == 2
    assert_names(result.stderr, f"JobSet team/sweep: {'status' if 'status' in changed else 'metadata.uid'}")


@pytest.mark.thorough
def test_any_value_is_loaded_or_reported(tmp_path: Path) -> None:
    """Into `muster apiserver`."""
    file = tmp_path / "a.yaml"
    with ApiServer() as server:
        server.load(resource_definitions())
        refused = 0
        for seed in range(150):
            file.write_text(yaml.dump_all(_changed(seed), Dumper=yaml_files.SafeDumper))
            try:
                load(server, [file])
            except ManifestError:
                refused += 1
    assert 0 < refused < 150


def test_every_file_of_a_folder_is_linted(muster: Muster, filed: Filed, tmp_path: Path) -> None:
    """Beside one with a value of a wrong type, which is a fault like others."""
    job = {"metadata": [], "spec": {"template": {"spec": {"containers": []}}}}
    filed(
        "a.yaml", a_runtime({"template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}}})
    )
    filed(
        "b.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: muster-policy}, data: {policy: 'a: 1'}}"
    )
    result = muster("lint", str(tmp_path), "-o", "json")
    assert result.exit_code == 1
    assert [(Path(fault["file"]).name, fault["reason"]) for fault in json.loads(result.stdout)] == [
        ("a.yaml", "UnreadableObject"),
        ("b.yaml", "InvalidPolicy"),
    ]


def test_a_key_that_is_no_string_is_a_fault(muster: Muster, filed: Filed) -> None:
    """In YAML `yes` is a boolean."""
    text = (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {yes: b}}, spec: {template: {}}}"
    )
    result = muster("lint", filed("a.yaml", text), "-o", "json")
    assert result.exit_code == 1
    assert [fault["reason"] for fault in json.loads(result.stdout)] == ["UnreadableObject"]


@pytest.mark.parametrize("group", ["example.com", "trainer"])
def test_a_kind_of_the_same_name_in_another_group_is_not_read(
    group: str, muster: Muster, filed: Filed
) -> None:
    """Its fields may have any type, and no policy of Muster's is in it."""
    annotations = {"muster.dev/pod-group-policy": "a: 1"}
    body = {**a_runtime({"template": "a"}), "apiVersion": f"{group}/v1alpha1"}
    body["metadata"]["annotations"] = annotations
    result = muster("lint", filed("a.yaml", body), "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(
            ["replay", "EVENT", "--objects", "FILE"], ["Job team/sweep", "spec.template.spec"], id="replay"
        ),
        pytest.param(["explain", "FILE"], ["Job sweep", "spec.template.spec"], id="explain"),
    ],
)
def test_the_object_and_its_field_are_named(
    arguments: list[str], names: list[str], muster: Muster, filed: Filed
) -> None:
    """In one line, exit status 2."""
    files = {"EVENT": filed("sweep.json", SWEEP), "FILE": filed("a.yaml", a_job(template={"spec": "3"}))}
    result = muster(*(files.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert_names(result.stderr, *names)


def test_a_plan_that_fails_names_them_too(muster: Muster, filed: Filed) -> None:
    """What is wrong is looked for only then, since files for a plan may have parts of objects."""
    files = ["--event", filed("sweep.json", SWEEP), "--objects", filed("a.yaml", a_runtime("1e400"))]
    result = muster("plan", "mark_runtime", *files)
    assert result.exit_code == 2
    assert_names(result.stderr, "TrainingRuntime team/staged: spec: ")


def test_a_plan_of_more_completions_than_python_counts_names_the_field(muster: Muster, filed: Filed) -> None:
    """An API server stores 32 bits of them."""
    job = a_job(completions=2**63)
    files = ["--event", filed("sweep.json", SWEEP), "--objects", filed("a.yaml", job)]
    result = muster("plan", "create_workload", *files)
    assert result.exit_code == 2
    assert_names(result.stderr, "Job team/sweep: spec.completions: ")


def test_a_plan_that_needs_the_uid_of_an_object_names_it(muster: Muster, filed: Filed) -> None:
    """No object of an API server is without one; written by hand it may be."""
    job = a_job()
    del job["metadata"]["uid"]
    files = ["--event", filed("sweep.json", SWEEP), "--objects", filed("a.yaml", job)]
    result = muster("plan", "create_workload", *files)
    assert result.exit_code == 2
    assert_names(result.stderr, "Job team/sweep: metadata.uid: ")


def test_a_kind_of_another_api_group_is_left_alone(muster: Muster, filed: Filed) -> None:
    """It has the name of one that Muster reads, and fields of its own."""
    foreign = {"apiVersion": "example.com/v1", "metadata": {"name": "a"}, "spec": ["b"]}
    objects = [{**foreign, "kind": kind} for kind in ("TrainJob", "TrainingRuntime", "JobSet", "Namespace")]
    result = muster("lint", filed("a.yaml", yaml.safe_dump_all(objects)))
    assert (result.exit_code, result.stdout) == (0, "0 policies and 0 jobs checked: 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    "text", ["kind: List\nitems: []\nitems: [1]", "a: &a {items: [1]}\nkind: List\n<<: *a"]
)
def test_items_that_are_merged_or_written_twice_are_those_of_yaml(text: str, tmp_path: Path) -> None:
    """The last ones; their line is known, or that of the List."""
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with ApiServer() as server, pytest.raises(ManifestError, match=r"a.yaml:[13]: is no Kubernetes object"):
        load(server, [file])


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"parallelism": 2**31}, "spec.parallelism", id="more than 32 bits"),
        pytest.param({"parallelism": True}, "spec.parallelism", id="a truth value for a number"),
        pytest.param({"suspend": 0}, "spec.suspend", id="a number for a truth value"),
        pytest.param({"selector": []}, "spec.selector", id="a list for a mapping"),
        pytest.param(
            {"template": {"spec": {"containers": [{}]}}},
            "spec.template.spec.containers[0].name",
            id="no name",
        ),
        pytest.param(
            {"template": {"spec": {"containers": [], "overhead": {"cpu": []}}}},
            "spec.template.spec.overhead.cpu",
            id="a list for a quantity",
        ),
    ],
)
def test_the_first_field_of_a_wrong_type_is_found(spec: Object, path: str) -> None:
    """By the schema of the kind."""
    found = type_fault(a_job(**spec))
    assert found is not None
    assert found[0] == path


@pytest.mark.parametrize("command", ["lint", "explain"])
@pytest.mark.parametrize("quantity", ["abc", "--1", "1e1.5", "Infinity", "NaN"])
def test_a_text_that_is_no_quantity_is_a_fault_of_its_field(
    command: str, quantity: str, muster: Muster, filed: Filed
) -> None:
    """In a quota and in a container of a Job or JobSet."""
    containers = [{"name": "main", "resources": {"limits": {"cpu": quantity}}}]
    job = a_job(template={"spec": {"containers": containers}})
    replicated = {"name": "node", "template": {"spec": job["spec"]}}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a"},
        "spec": {"replicatedJobs": [replicated]},
    }
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "b"}}
    quota["spec"] = {"hard": {"pods": quantity}}
    result = muster(command, filed("a.yaml", yaml.safe_dump_all([job, jobset, quota])))
    assert result.exit_code == (1 if command == "lint" else 2)
    containers_path = "template.spec.containers[0].resources.limits.cpu: must be a quantity"
    assert_names(
        result.output,
        f"spec.{containers_path}",
        f"spec.replicatedJobs[0].template.spec.{containers_path}",
        "spec.hard.pods: must be a quantity",
    )


@pytest.mark.parametrize("command", ["lint", "explain"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("{folder}/runtime", id="a path"),
        pytest.param("../runtimes/torch-distributed", id="a path from the folder of the shipped ones"),
        pytest.param("a" * 1000, id="a long name"),
        pytest.param("a\0b", id="a null character"),
    ],
)
def test_the_name_of_a_runtime_is_no_path(
    command: str, name: str, muster: Muster, filed: Filed, tmp_path: Path
) -> None:
    """The runtimes that the Trainer ships are known by name; any other is unknown."""
    filed("runtime.yaml", (RUNTIMES / "torch-distributed.yaml").read_text())
    spec = {"runtimeRef": {"name": name.format(folder=tmp_path)}}
    trainjob = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "a"}}
    result = muster(command, filed("a.json", {**trainjob, "spec": spec}))
    assert result.exit_code == (0 if command == "lint" else 2)
    assert_names(result.output, "is neither in the file nor shipped by the Trainer")


def test_a_creation_timestamp_that_is_no_time_counts_as_none(muster: Muster, filed: Filed) -> None:
    """In a file of anybody, and without a time zone too."""
    for text in ("x", "2026-01-01T00:00:00"):
        job = a_job()
        job["metadata"]["creationTimestamp"] = text
        result = muster("explain", filed("a.json", job))
        assert (result.exit_code, "Job team/sweep" in result.stdout) == (0, True)


@pytest.mark.parametrize("body", OBJECTS, ids=lambda body: f"{body['kind']} {body['metadata']['name']}")
def test_objects_that_a_server_takes_have_none(body: Object) -> None:
    """The examples, and what is in a recording."""
    assert type_fault(body) is None
    assert type_fault({**body, "apiVersion": body["apiVersion"].replace("v1", "v9")}) is None

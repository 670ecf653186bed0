"""`muster check`: findings about the cluster, the installation, and before an uninstall."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.cli import check
from muster.cluster.errors import MESSAGE_LIMIT, ClusterError, Forbidden, TooManyRequests
from muster.cluster.http.client import Client
from muster.operator.check import Finding, Level, check_cluster, check_installation
from muster.simulator.apiserver import ApiServer, Gates, resource_definitions
from muster.simulator.overlays import Manifest, load, of_kind
from tests.support import builders as b
from tests.support.overlays import objects_in
from tests.unit.cli.conftest import Muster, assert_names

OBJECTS = load()
YEARS_LATER = datetime(2030, 1, 1, tzinfo=UTC)
POLICIES = objects_in("admission")
LIMITS = objects_in("security/accounts")
ACCOUNTS = "policies of the service accounts"
KNATIVE = ("Broker", "Trigger", "ApiServerSource", "PingSource", "Service")


def findings(iterator: Iterator[Finding]) -> dict[str, tuple[Level, str]]:
    """Findings by what they are about."""
    return {finding.about: (finding.level, finding.message) for finding in iterator}


def finding_about(found: dict[str, tuple[Level, str]], name: str) -> tuple[Level, str]:
    """Return the level and the message of the one finding about an object of this name."""
    (finding,) = (finding for key, finding in found.items() if key.endswith(name))
    return finding


def lines(text: str) -> dict[str, str]:
    """The level of each line of `muster check`, by what it is about."""
    columns = [line.split(maxsplit=1) for line in text.splitlines()]
    return {rest.partition(": ")[0]: level for level, rest in columns}


def definition(obj: Manifest) -> Any:
    """A definition that lets the embedded API server store a kind of Knative's as it comes."""
    group, _, version = obj["apiVersion"].partition("/")
    plural = f"{obj['kind'].lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": obj["kind"].lower(), "kind": obj["kind"]},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def readied(manifest: Manifest, status: str = "True", message: str = "") -> Manifest:
    """A Knative object as its controller leaves it."""
    condition = {"type": "Ready", "status": status, "message": message}
    return {**manifest, "status": {"conditions": [condition]}}


def knative(*kinds: str) -> list[Manifest]:
    """What an overlay installs of these kinds."""
    return [manifest for kind in kinds for manifest in of_kind(OBJECTS, kind)]


DEFINITIONS = list({obj["kind"]: definition(obj) for obj in knative(*KNATIVE)}.values())


def test_each_page_that_is_read_is_shown(
    muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of a thousand pods of a megabyte each take minutes."""
    shown: list[str] = []

    @contextmanager
    def step_shown(_text: str) -> Iterator[Callable[[str], None]]:
        yield shown.append

    monkeypatch.setattr(check, "step_shown", step_shown)
    with ApiServer() as server:
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(server.kubeconfig())
        muster("check", "--uninstall", "--kubeconfig", str(kubeconfig))
    assert [line.partition(":")[0] for line in shown if ": page " in line].count("pods") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(
            {},
            {
                "scheduling API": "ok",
                "CompositePodGroup": "ok",
                "stored groups": "ok",
                "pod.spec.schedulingGroup": "ok",
                "admission policies": "ok",
                "JobSet": "ok",
                "the Trainer": "ok",
                "Knative Serving": "FAIL",
            },
            id="1.37 with its gates is fit but for Knative",
        ),
        pytest.param(
            {"gates": Gates(generic_workload=False)},
            {"scheduling API": "FAIL", "admission policies": "ok"},
            id="without the gate there is no scheduling API",
        ),
        pytest.param(
            {"gates": Gates(composite_pod_group=False)},
            {"scheduling API": "ok", "CompositePodGroup": "warn"},
            id="without the alpha gate policies cannot nest groups",
        ),
        pytest.param(
            {"release": "1.36"},
            {"scheduling API": "ok", "minCount": "warn", "CompositePodGroup": "warn"},
            id="1.36 does not let minCount change",
        ),
    ],
)
def test_versions_and_gates_of_the_cluster_are_reported(
    muster: Muster, tmp_path: Path, options: dict[str, Any], expected: dict[str, str]
) -> None:
    """Versions and gates, each by what the API server shows of it."""
    with ApiServer(**options) as server:
        server.load(resource_definitions())
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        result = muster("check", "--before", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert result.exit_code == 1
    assert expected.items() <= lines(result.stdout).items()
    assert "Triggers" not in result.stdout


def test_fit_cluster_exits_with_0(muster: Muster, tmp_path: Path) -> None:
    """With Knative's kinds served there is nothing to mend."""
    with ApiServer() as server:
        server.load([*resource_definitions(), *DEFINITIONS])
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        result = muster("check", "--before", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert (result.exit_code, set(lines(result.stdout).values())) == (0, {"ok"})


@pytest.mark.parametrize(
    ("on", "state"),
    [
        pytest.param(True, "on", id="with the gate the Job controller does"),
        pytest.param(False, "off", id="without it Muster does"),
    ],
)
def test_who_groups_plain_jobs(muster: Muster, tmp_path: Path, on: bool, state: str) -> None:
    """The alpha gate WorkloadWithJob is seen by a Job's field that the API server keeps, in a dry run."""
    with ApiServer(gates=Gates(workload_with_job=on)) as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        result = muster("check", "--before", "--kubeconfig", str(tmp_path / "kubeconfig"))
        status, jobs = Client.for_server(server.url).raw("GET", "/apis/batch/v1/jobs")
    line = next(line for line in result.stdout.splitlines() if "WorkloadWithJob" in line)
    assert re.findall(r"\b(?:on|off)\b", line) == [state]
    assert (status, jobs["items"]) == (200, [])
    assert lines(result.stdout)["JobSet"] == "warn"


class Unlistable(Client):
    """A cluster whose lists of stored objects fail."""

    error: ClusterError

    def page(self, *_: Any, **__: Any) -> Any:
        """What the API server says instead."""
        raise self.error


@pytest.mark.parametrize(
    ("error", "level", "mentioned"),
    [
        pytest.param(
            TooManyRequests('no kind "PodGroup" is registered for version "scheduling.k8s.io/v1alpha2"'),
            Level.FAIL,
            "docs/install.md",
            id="what 1.36 stored has to go before the upgrade to 1.37",
        ),
        pytest.param(Forbidden("no role"), Level.WARN, "no role", id="listing is forbidden"),
    ],
)
def test_groups_that_cannot_be_listed(error: ClusterError, level: Level, mentioned: str) -> None:
    """The API server's message says whether it is the stored objects."""
    with ApiServer() as server:
        client = Unlistable.for_server(server.url)
        client.error = error
        found = findings(check_cluster(client, "default"))
    assert found["stored groups"][0] == level
    assert mentioned in found["stored groups"][1]


def test_a_refused_dry_run_is_reported() -> None:
    """A namespace that may not be written to, or was just deleted, leaves the question open."""
    with ApiServer() as server:
        found = findings(check_cluster(Client.for_server(server.url), "nowhere"))
    level, message = found["pod.spec.schedulingGroup"]
    assert level == "warn"
    assert_names(message, "nowhere", "404")


def test_the_message_of_a_refused_dry_run_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may answer 64 MiB of text."""
    raw = Client.raw

    def proxied(client: Client, method: str, path: str, **options: Any) -> tuple[int, Any]:
        return (500, "x" * 1_000_000) if method == "POST" else raw(client, method, path, **options)

    monkeypatch.setattr(Client, "raw", proxied)
    with ApiServer() as server:
        found = findings(check_cluster(Client.for_server(server.url), "nowhere"))
    assert len(found["pod.spec.schedulingGroup"][1]) < 2 * MESSAGE_LIMIT


def installed(*stored: Any, now: datetime | None = None) -> dict[str, tuple[Level, str]]:
    """What is found where these objects are installed; by default long after they were."""
    with ApiServer() as server:
        server.load([*DEFINITIONS, *stored])
        return findings(check_installation(Client.for_server(server.url), OBJECTS, now or YEARS_LATER))


def test_nothing_is_installed() -> None:
    """Policies and everything of Knative's are missed."""
    level_and_message = installed()
    assert level_and_message["MutatingAdmissionPolicy muster-stamp-pods"][0] == Level.FAIL
    assert level_and_message["Triggers"][0] == Level.FAIL
    assert level_and_message[ACCOUNTS][0] == Level.WARN
    assert_names(level_and_message["Triggers"][1], "emit-conditions")
    assert finding_about(level_and_message, "muster.dev/gang-jobs")[0] == Level.WARN
    # The embedded API server has no authorization.
    assert level_and_message["permissions"][0] == Level.WARN


def test_everything_is_installed() -> None:
    """Policies as they are written, and all of Knative's objects ready."""
    found = installed(*POLICIES, *LIMITS, *map(readied, knative(*KNATIVE)), b.a_namespace())
    assert {level for about, (level, _) in found.items() if about != "permissions"} == {Level.OK}
    assert_names(found["Triggers"][1], str(len(knative("Trigger"))))
    assert_names(finding_about(found, "muster.dev/gang-jobs")[1], "team-a")


@pytest.mark.parametrize(
    ("namespaces", "level"),
    [
        pytest.param(15, Level.WARN, id="many namespaces of the last hour"),
        pytest.param(1, None, id="one"),
    ],
)
def test_namespaces_that_come_and_go(namespaces: int, level: Level | None) -> None:
    """Each replaces the adapters of the sources that select all namespaces."""
    names = [f"ci-{index}" for index in range(namespaces)]
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    found = installed(*objects, now=datetime.now(UTC))  # noqa: TID251 - the server's own clock
    assert found.get("new namespaces", (None,))[0] == level


def test_policy_that_was_changed() -> None:
    """Another expression would name pods as no function expects; what the server adds is no change."""
    changed = [
        {**obj, "spec": {**obj["spec"], "failurePolicy": "Ignore"}}
        if obj["metadata"]["name"] == "muster-stamp-pods" and "Binding" not in obj["kind"]
        else obj
        for obj in POLICIES
    ]
    found = installed(*changed)
    assert found["MutatingAdmissionPolicy muster-stamp-pods"][0] == Level.WARN
    assert found["MutatingAdmissionPolicy muster-mark-jobs"][0] == Level.OK


@pytest.mark.parametrize("left_out", LIMITS, ids=lambda one: f"{one['kind']}")
def test_policy_of_an_account_that_is_missing(left_out: Manifest) -> None:
    """Policy or binding: without either the account is not limited."""
    level, message = installed(*(one for one in LIMITS if one is not left_out))[ACCOUNTS]
    assert (level, left_out["metadata"]["name"] in message) == (Level.WARN, True)


def test_policy_of_an_account_that_was_changed() -> None:
    """One that only warns refuses nothing."""
    *others, last = LIMITS
    warning = {**last, "spec": {**last["spec"], "validationActions": ["Warn"]}}
    level, message = installed(*others, warning)[ACCOUNTS]
    assert (level, last["metadata"]["name"] in message) == (Level.WARN, True)


def test_a_source_that_is_not_ready_is_reported_with_its_reason() -> None:
    """What Knative says of it; the others are counted."""
    first, *others = knative("ApiServerSource")
    stored = [readied(first, "False", "sink not found"), *map(readied, others)]
    with ApiServer() as server:
        server.load([*DEFINITIONS, *stored])
        reported = [
            (finding.level, finding.message)
            for finding in check_installation(Client.for_server(server.url), OBJECTS, YEARS_LATER)
            if finding.about == "ApiServerSources"
        ]
    (ready, ready_message), (unready, unready_message) = reported
    assert (ready, unready) == (Level.OK, Level.FAIL)
    assert_names(ready_message, str(len(others)), str(len(others) + 1))
    assert_names(unready_message, first["metadata"]["name"], "sink not found")


def test_musters_own_namespace_must_not_opt_in() -> None:
    """Its pods would wait for Muster."""
    labelled = {"metadata": {"name": "muster-system", "labels": {"muster.dev/gang-jobs": "enabled"}}}
    found = installed({"apiVersion": "v1", "kind": "Namespace", **labelled})
    level, _ = finding_about(found, " muster-system")
    assert level == Level.FAIL


def test_findings_as_data(muster: Muster, tmp_path: Path) -> None:
    """With the same exit status."""
    with ApiServer() as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        arguments = ["check", "--before", "--kubeconfig", str(tmp_path / "kubeconfig")]
        text, data = muster(*arguments), muster(*arguments, "-o", "json")
    found = json.loads(data.stdout)
    assert text.exit_code == data.exit_code
    assert [entry["about"] for entry in found] == [
        line[6:].partition(": ")[0] for line in text.stdout.splitlines()
    ]
    assert {entry["level"] for entry in found} <= {"ok", "warn", "FAIL"}

"""Stories with Knative's own broker, triggers, channel, webhooks and PingSource.

A few of other modules, of each way in which events matter; and those of what only real Knative does:
webhooks, tokens, adapters that are replaced, parts that are away.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muster.data import EVENTING
from tests.cluster import kubectl, manifests
from tests.cluster.api import MERGE_PATCH
from tests.cluster.cluster import ClusterOptions
from tests.cluster.knative.stack import Knative
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage, Stages
from tests.e2e.installation import test_dead_letters, test_outages, test_readiness, test_uninstalling
from tests.e2e.installation.test_dead_letters import Letters
from tests.e2e.owners import test_jobs, test_trainjobs
from tests.e2e.support.muster import NAMESPACE, Muster
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(knative=True)

_letters = test_dead_letters._letters
without_adapters = test_outages.without_adapters
test_an_event_that_no_function_took_is_kept_and_does_its_work_when_sent_again = (
    test_dead_letters.test_an_event_that_no_function_took_is_kept_and_does_its_work_when_sent_again
)
test_a_job_scaled_up_grows_its_gang = test_jobs.test_a_job_scaled_up_grows_its_gang
test_an_indexed_job_runs_as_one_gang = test_jobs.test_an_indexed_job_runs_as_one_gang
test_a_sweep_repairs_changes_made_while_the_adapters_were_down = (
    test_outages.test_a_sweep_repairs_changes_made_while_the_adapters_were_down
)
test_every_function_has_all_its_permissions = test_readiness.test_every_function_has_all_its_permissions
test_a_torch_trainjob_runs_as_one_gang = test_trainjobs.test_a_torch_trainjob_runs_as_one_gang
test_jobs_outlive_muster = test_uninstalling.test_jobs_outlive_muster

CLUSTER = EVENTING / "overlays" / "cluster"
EVENT_POLICY = EVENTING / "components" / "event-policy"
LABELLED = EVENTING / "components" / "labelled-namespaces"
OWN_STEP = EVENTING / "examples" / "label_racks"
OVERLAYS = sorted(
    file.parent
    for file in EVENTING.glob("overlays/*/kustomization.yaml")
    # Serving's webhook tries out a pod, which needs its service account; see test_knative_one_namespace.py.
    if file.parent.name != "one-namespace"
)
BROKER = f"http://broker-ingress.knative-eventing.svc.cluster.local/{NAMESPACE}/muster"
UNAUTHORIZED = 401


@pytest.fixture
def knative(stage: RealStage) -> Knative:
    """Knative on the stage."""
    assert stage.cluster.knative
    return stage.cluster.knative


@pytest.fixture
def labelled(stage: RealStage, tmp_path: Path) -> Iterator[None]:
    """The sources with the component labelled-namespaces."""
    _kubectl(stage, "apply", "-k", str(_with_component(tmp_path, LABELLED)))
    stage.muster.settle()
    yield
    _kubectl(stage, "apply", "-k", str(CLUSTER))
    stage.muster.settle()


@pytest.fixture
def authenticated(stage: RealStage, tmp_path: Path, knative: Knative) -> None:
    """The flag authentication-oidc, and the component event-policy; the stage is of no use afterwards."""
    path = "/api/v1/namespaces/knative-eventing/configmaps/config-features"
    stage.cluster.api.must("PATCH", path, {"data": {"authentication-oidc": "enabled"}}, MERGE_PATCH)
    # Knative leaves some subscribers of a running broker as they are.
    _kubectl(stage, "--namespace", NAMESPACE, "delete", "triggers,brokers", "--all", "--cascade=foreground")
    apply = ("apply", "-k", str(_with_component(tmp_path, EVENT_POLICY)))
    assert until(lambda: not kubectl.call(*apply, kubeconfig=stage.cluster.kubeconfig).returncode, 30)
    assert until(lambda: _adapters_have_tokens(stage), 60), "the adapters do not follow the flag"
    assert until(lambda: _deliveries_have_tokens(stage), 60), "the triggers do not follow the flag"
    knative.forget_refused()
    stage.muster.settle()


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda folder: str(folder.name))
def test_every_object_of_an_overlay_is_accepted(stage: RealStage, overlay: Path) -> None:
    """Knative's webhooks, Serving's included, accept what a person applies.

    Serving looks up the service account of a Service, which a dry run does not create.
    """
    if overlay.name == "one-service":
        _kubectl(stage, "apply", "-f", str(EVENTING / "components/one-service/account.yaml"))
    _kubectl(stage, "apply", "--dry-run=server", "-k", str(overlay))


def test_an_example_step_is_accepted(stage: RealStage) -> None:
    """Its Service and its Trigger, beside those of the overlay."""
    _kubectl(stage, "apply", "-k", str(OWN_STEP))
    _kubectl(stage, "delete", "-k", str(OWN_STEP))


def test_an_event_policy_is_refused_without_authentication(stage: RealStage) -> None:
    """So it is in no overlay, only in a component."""
    policy = str(EVENT_POLICY / "event-policy.yaml")
    done = kubectl.call("apply", "--dry-run=server", "-f", policy, kubeconfig=stage.cluster.kubeconfig)
    assert (done.returncode, "oidc-authentication feature not enabled" in done.stderr) == (1, True)


def test_with_authentication_only_musters_own_events_are_accepted(
    authenticated: None, stages: Stages, story: RealStory, knative: Knative
) -> None:
    """Adapters and triggers send tokens of their identity: a Job runs. Other senders are refused."""
    del authenticated
    stages.spoil()
    attributes = {"specversion": "1.0", "id": "1", "source": "/tests", "type": "dev.muster.sweep"}
    headers = {f"Ce-{name}": value for name, value in attributes.items()}
    assert until(lambda: knative.request(BROKER, "POST", headers) == UNAUTHORIZED, 30)
    story.add_nodes(1)
    story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("main") == {"gang": {"minCount": 3}}


def test_a_new_namespace_replaces_every_adapter(stage: RealStage, knative: Knative) -> None:
    """The sources select all namespaces, and Knative gives every adapter their list."""
    before = _adapters(knative)
    _make_namespace(stage, "appears-1")
    assert until(lambda: not before & _adapters(knative), 60)
    stage.muster.settle()


def test_with_labelled_namespaces_others_come_and_go_unnoticed(
    labelled: None, begin_story: Callable[..., RealStory], stage: RealStage, knative: Knative
) -> None:
    """The adapters stay, and the events of a labelled namespace come as before."""
    del labelled
    story = begin_story()
    before = _adapters(knative)
    _make_namespace(stage, "appears-2")
    story.add_nodes(1)
    story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.recording.quiet()
    assert _adapters(knative) == before


def test_the_next_ping_repairs_changes_that_no_adapter_saw(story: RealStory, muster_on_it: Muster) -> None:
    """A Job made while there was no adapter gets its Workload from the sweep of the next minute."""
    story.add_nodes(1)
    muster_on_it.stop_adapters()
    story.create(a_job("sweep", pods=2))
    story.wait("two pods are made", lambda now: len(now.pods()) == 2)
    muster_on_it.start_adapters()
    story.wait("two pods run", lambda now: now.running() == 2, 130)


def test_a_sweep_repairs_events_that_died_in_a_retrying_dispatcher(
    story: RealStory, stage: RealStage, knative: Knative, letters: Letters
) -> None:
    """Events that it had accepted die with it, without a dead letter."""
    story.add_nodes(1)
    stage.muster.stop_function("patch-pods")
    story.create(a_job("sweep", pods=2))
    story.wait("the group is made", lambda now: len(now.groups()) == 1)
    ((name, process),) = _pods_of(knative, "imc-dispatcher").items()
    os.kill(int(process["pid"]), signal.SIGKILL)
    assert until(lambda: _pods_of(knative, "imc-dispatcher")[name]["pid"] != process["pid"], 30)
    assert until(lambda: knative.listens("imc-dispatcher"), 30)
    knative.forget_refused()
    stage.muster.start_function("patch-pods")
    assert letters.names() == set()
    stage.muster.sweep()
    story.wait("two pods run", lambda now: now.running() == 2)


def _pods_of(knative: Knative, deployment: str) -> dict[str, dict[str, float]]:
    return {name: process for name, process in knative.pods().items() if name.startswith(deployment)}


def _adapters(knative: Knative) -> set[str]:
    return set(_pods_of(knative, "apiserversource-"))


def _make_namespace(stage: RealStage, name: str) -> None:
    manifests.apply(
        stage.cluster.api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}]
    )


def _adapters_have_tokens(stage: RealStage) -> bool:
    """Return whether all adapters have an audience, for which they fetch tokens."""
    deployments = stage.cluster.api.must("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")["items"]
    return all("K_AUDIENCE" in str(deployment["spec"]) for deployment in deployments)


def _deliveries_have_tokens(stage: RealStage) -> bool:
    """Return whether the channel sends a token to the filter of every trigger."""
    triggers = stage.cluster.api.must("GET", f"/apis/eventing.knative.dev/v1/namespaces/{NAMESPACE}/triggers")
    path = f"/apis/messaging.knative.dev/v1/namespaces/{NAMESPACE}/inmemorychannels/muster-kne-trigger"
    answer = stage.cluster.api.request("GET", path)
    subscribers = answer.body["spec"].get("subscribers") or [] if answer.ok else []
    return ["auth" in subscriber for subscriber in subscribers] == [True] * len(triggers["items"])


def _with_component(folder: Path, component: Path) -> Path:
    """Write an overlay of the cluster overlay and a component, and return its folder."""
    resources, components = (os.path.relpath(path, folder.resolve()) for path in (CLUSTER, component))
    text = f"resources: [{resources}]\ncomponents: [{components}]\n"
    (folder / "kustomization.yaml").write_text(text)
    return folder


def _kubectl(stage: RealStage, *arguments: str) -> str:
    return kubectl.run(*arguments, kubeconfig=stage.cluster.kubeconfig)

"""Tables, which `kubectl get` prints."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import (
    composite_group,
    condition,
    config_map,
    core,
    gang,
    gated,
    groups,
    job,
    jobs,
    pod,
    pod_group,
    priority_class,
    serve_widgets,
    widget,
    widgets,
    workload,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
POLICIES = "/apis/admissionregistration.k8s.io/v1/{}"


def _create(api: Conversation, path: str, body: object) -> None:
    """Create an object; not recorded, because these cases are about tables."""
    api.api.must("POST", path, body)


def _status(api: Conversation, path: str, **status: object) -> None:
    api.api.must("PATCH", f"{path}/status", {"status": status}, MERGE_PATCH)


@case(releases=BOTH)
def pods_placed(api: Conversation, ns: str) -> None:
    """A pod on a node shows the node, its address, ready containers and restarts."""
    _create(api, core(ns, "pods"), pod("placed", nodeName="node-1"))
    running = {"startedAt": "2026-01-01T00:00:00Z"}
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}
    container = {
        "name": "main",
        "image": "busybox",
        "imageID": "",
        "ready": True,
        "restartCount": 2,
        "state": {"running": running},
        "lastState": {"terminated": ended},
    }
    path = core(ns, "pods", "placed")
    _status(api, path, phase="Running", podIPs=[{"ip": "10.0.0.7"}], containerStatuses=[container])
    (row,) = api.table(core(ns, "pods"))
    assert (row["Node"], row["IP"], row["Ready"], row["Status"]) == ("node-1", "10.0.0.7", "1/1", "Running")


@case(releases=BOTH)
def pods_waiting(api: Conversation, ns: str) -> None:
    """A pod without a node shows <none>, and SchedulingGated while it has a gate."""
    _create(api, core(ns, "pods"), gated("gated", "example.com/wait"))
    _create(api, core(ns, "pods"), pod("pending"))
    gate, pending = api.table(core(ns, "pods"))
    assert (gate["Status"], gate["Node"], gate["IP"]) == ("SchedulingGated", "<none>", "<none>")
    assert pending["Status"] == "Pending"


@case(releases=BOTH)
def pods_ended(api: Conversation, ns: str) -> None:
    """Pods that ended show the reason of their container; their rows are marked as completed."""
    for name, phase, code in (("done", "Succeeded", 0), ("broken", "Failed", 3)):
        _create(api, core(ns, "pods"), pod(name, nodeName="node-1"))
        ended = {"exitCode": code, **({"reason": "Completed"} if code == 0 else {})}
        container = {
            "name": "main",
            "image": "busybox",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        _status(api, core(ns, "pods", name), phase=phase, containerStatuses=[container])
    broken, done = api.table(core(ns, "pods"))
    assert (broken["Status"], done["Status"]) == ("ExitCode:3", "Completed")


@case(releases=BOTH)
def pods_evicted(api: Conversation, ns: str) -> None:
    """The reason in a pod's status is shown in place of its phase."""
    _create(api, core(ns, "pods"), pod("evicted", nodeName="node-1"))
    _status(api, core(ns, "pods", "evicted"), phase="Failed", reason="Evicted")
    assert api.table(core(ns, "pods"))[0]["Status"] == "Evicted"


@case(releases=BOTH)
def pods_leaving(api: Conversation, ns: str) -> None:
    """A pod that is being deleted shows Terminating; a single object is a Table of one row."""
    _create(api, core(ns, "pods"), pod("leaving", {"finalizers": ["example.com/wait"]}))
    api.api.must("DELETE", core(ns, "pods", "leaving"))
    (row,) = api.table(core(ns, "pods", "leaving"))
    assert row["Status"] == "Terminating"


@case(releases=BOTH)
def jobs_printed(api: Conversation, ns: str) -> None:
    """A Job shows its state, completions, duration, containers and images."""
    selector = {"matchLabels": {"b": "2", "a": "1"}}
    _create(api, jobs(ns), job("held", suspend=True))
    _create(api, jobs(ns), job("wide", parallelism=3, completions=None))
    labelled = job("selected", completions=2, manualSelector=True, selector=selector)
    labelled["spec"]["template"]["metadata"] = {"labels": selector["matchLabels"]}
    _create(api, jobs(ns), labelled)
    found = {row["Name"]: row for row in api.table(jobs(ns), fieldSelector="metadata.name=selected")}
    assert found["selected"]["Selector"] == "a=1,b=2"
    assert found["selected"]["Completions"] == "0/2"
    path = jobs(ns, "selected")
    suspended = condition("Suspended", "True")
    _status(api, path, conditions=[suspended])
    (row,) = api.table(path)
    assert row["Status"] == "Suspended"


@case()
def pod_groups_printed(api: Conversation, ns: str) -> None:
    """A PodGroup shows its policy, its Workload, and whether it was scheduled."""
    for name in ("waiting", "placed", "stuck"):
        _create(api, groups(ns, "podgroups"), pod_group(name))
    basic = pod_group("basic", schedulingPolicy={"basic": {}})
    _create(api, groups(ns, "podgroups"), basic)
    for name, status in (("placed", "True"), ("stuck", "False")):
        done = condition("PodGroupInitiallyScheduled", status)
        _status(api, groups(ns, "podgroups", name), conditions=[done])
    found = {row["Name"]: row for row in api.table(groups(ns, "podgroups"))}
    assert {name: (row["Policy"], row["Status"]) for name, row in found.items()} == {
        "basic": ("Basic", "Pending"),
        "placed": ("Gang", "Scheduled"),
        "stuck": ("Gang", "Unschedulable"),
        "waiting": ("Gang", "Pending"),
    }


@case()
def pod_groups_disrupted(api: Conversation, ns: str) -> None:
    """A PodGroup that is disrupted shows the reason."""
    _create(api, groups(ns, "podgroups"), pod_group("hit", schedulingPolicy={"gang": gang()["gang"]}))
    hit = condition("DisruptionTarget", "True", reason="PreemptionByScheduler")
    _status(api, groups(ns, "podgroups", "hit"), conditions=[hit])
    assert api.table(groups(ns, "podgroups"))[0]["Status"] == "PreemptionByScheduler"


@case()
def workloads_printed(api: Conversation, ns: str) -> None:
    """Workloads show name and age; a CompositePodGroup shows policy and Workload as well."""
    _create(api, groups(ns, "workloads"), workload("work"))
    assert api.table(groups(ns, "workloads"))[0]["Name"] == "work"
    path = groups(ns, "compositepodgroups", version="v1alpha3")
    _create(api, path, composite_group("whole"))
    assert api.table(path)[0]["Name"] == "whole"


@case(releases=BOTH)
def nodes_printed(api: Conversation, ns: str) -> None:
    """A node shows whether it is ready, its roles, versions and addresses."""
    name = f"{ns}-node"
    labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}
    spec = {"unschedulable": True}
    _create(api, "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": spec})
    assert api.table(f"/api/v1/nodes/{name}")[0]["Status"] == "Unknown,SchedulingDisabled"
    information = {"kubeletVersion": "v1.37.1", "architecture": "arm64", "kernelVersion": "6.1"}
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.1.1.1"}]
    path = f"/api/v1/nodes/{name}"
    _status(api, path, conditions=[condition("Ready")], addresses=addresses, nodeInfo=information)
    (row,) = api.table(path)
    assert (row["Roles"], row["Version"], row["Internal-IP"]) == ("gpu,worker", "v1.37.1", "10.1.1.1")


@case(releases=BOTH)
def events_printed(api: Conversation, ns: str) -> None:
    """An Event shows when it was last seen, from whichever of its times is set."""
    about = {"kind": "Pod", "name": "pod", "namespace": ns, "fieldPath": "spec.containers{main}"}
    old = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-02T00:00:00Z", "count": 4}
    new = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingComponent": "example.com/controller",
        "reportingInstance": "controller-1",
        "action": "Binding",
    }
    series = {"series": {"count": 7, "lastObservedTime": "2026-01-03T00:00:00.000000Z"}}
    for name, more in (("bare", {}), ("new", new), ("old", old), ("series", new | series)):
        event = {
            "metadata": {"name": name},
            "involvedObject": about,
            "type": "Normal",
            "reason": "Seen",
            "message": "two words\n",
            **more,
        }
        if "reportingComponent" not in more:
            event["source"] = {"component": "kubelet", "host": "node-1"}
        _create(api, core(ns, "events"), event)
    rows = {row["Name"]: row for row in api.table(core(ns, "events"))}
    assert rows["bare"]["Last Seen"] == "<unknown>"
    assert (rows["old"]["Count"], rows["series"]["Count"], rows["new"]["Count"]) == (4, 7, 1)
    assert rows["old"]["Object"] == "pod/pod"


@case(releases=BOTH)
def small_kinds_printed(api: Conversation, ns: str) -> None:
    """ConfigMaps and Secrets show how much they have, ServiceAccounts their age, Leases their holder."""
    _create(api, core(ns, "configmaps"), config_map("map", data={"a": "1", "b": "2"}))
    (row,) = api.table(core(ns, "configmaps"), fieldSelector="metadata.name=map")
    assert row["Data"] == 2
    _create(api, core(ns, "secrets"), {"metadata": {"name": "secret"}, "data": {"a": "MQ=="}})
    (row,) = api.table(core(ns, "secrets"), fieldSelector="metadata.name=secret")
    assert (row["Type"], row["Data"]) == ("Opaque", 1)
    _create(api, core(ns, "serviceaccounts"), {"metadata": {"name": "robot"}})
    assert api.table(core(ns, "serviceaccounts", "robot"))[0]["Name"] == "robot"
    lease = {"metadata": {"name": "lease"}, "spec": {"holderIdentity": "somebody"}}
    _create(api, LEASES.format(ns), lease)
    assert api.table(LEASES.format(ns))[0]["Holder"] == "somebody"


@case(releases=BOTH)
def services_printed(api: Conversation, ns: str) -> None:
    """A Service shows its type, addresses, ports and selector."""
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
    headless = {"clusterIP": "None", "ports": ports, "selector": {"b": "2", "a": "1"}}
    _create(api, core(ns, "services"), {"metadata": {"name": "headless"}, "spec": headless})
    outside = {"type": "ExternalName", "externalName": "example.com"}
    _create(api, core(ns, "services"), {"metadata": {"name": "outside"}, "spec": outside})
    rows = {row["Name"]: row for row in api.table(core(ns, "services"))}
    assert rows["headless"]["Port(s)"] == "80/TCP,53/UDP"
    assert rows["headless"]["Cluster-IP"] == "None"
    assert rows["outside"]["External-IP"] == "example.com"


@case(releases=BOTH)
def cluster_kinds_printed(api: Conversation, ns: str) -> None:
    """Namespaces show their phase, PriorityClasses their value."""
    assert api.table(f"/api/v1/namespaces/{ns}")[0]["Status"] == "Active"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    _create(api, classes, priority_class(f"{ns}-class", 7))
    (row,) = api.table(f"{classes}/{ns}-class")
    assert (row["Value"], row["Global-Default"], row["PreemptionPolicy"]) == (
        7,
        False,
        "PreemptLowerPriority",
    )


@case()
def definitions_printed(api: Conversation, ns: str) -> None:
    """Definitions show their scope, the versions they serve, and whether they are established."""
    serve_widgets(api.api, ns)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    (row,) = api.table(f"{definitions}/widgets.contract.muster.dev")
    assert (row["Scope"], row["Versions"], row["Established"]) == ("Namespaced", "v1(storage)", True)


@case()
def policies_printed(api: Conversation, ns: str) -> None:
    """Admission policies show how many rules they have, bindings the policy's name."""
    constraints = {
        "resourceRules": [
            {
                "apiGroups": ["none.muster.dev"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["x"],
            }
        ]
    }
    spec = {"matchConstraints": constraints, "validations": [{"expression": "true"}]}
    for plural, kind, more in (
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", spec),
        (
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            {"policyName": f"{ns}-policy", "validationActions": ["Deny"]},
        ),
    ):
        body = {"kind": kind, "metadata": {"name": f"{ns}-policy"}, "spec": more}
        body["apiVersion"] = "admissionregistration.k8s.io/v1"
        _create(api, POLICIES.format(plural), body)
        assert len(api.table(f"{POLICIES.format(plural)}/{ns}-policy")) == 1


@case(releases=BOTH)
def custom_printed(api: Conversation, ns: str) -> None:
    """A custom resource shows the columns of its definition; a field that is unset is null."""
    serve_widgets(api.api, ns)
    _create(api, widgets(ns), widget("sized", size=3))
    (row,) = api.table(widgets(ns))
    assert row == {"Name": "sized", "Size": 3}


@case(releases=BOTH)
def rows_with_objects(api: Conversation, ns: str) -> None:
    """A row has the metadata of its object, nothing, or the whole object, as the client asks."""
    _create(api, core(ns, "configmaps"), config_map("map", data={"a": "1"}))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    kinds = {}
    for include in ("Metadata", "None", "Object"):
        query = {"includeObject": include}
        answer = api.api.request("GET", core(ns, "configmaps", "map"), query=query, accept=accept)
        kinds[include] = (answer.body["rows"][0]["object"] or {}).get("kind")
    assert kinds == {"Metadata": "PartialObjectMetadata", "None": None, "Object": "ConfigMap"}

"""ValidatingAdmissionPolicies: what a refusal looks like, and what expressions see of a request."""

from __future__ import annotations

from typing import Any

from tests.cluster.processes import until
from tests.contract.accounts import PATIENCE, REFUSED_BY
from tests.contract.bodies import Object, config_map, core
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"


def _install(api: Conversation, ns: str, validation: Object, **spec: Any) -> None:
    """Install a policy that refuses every ConfigMap of the namespace, and wait until it does."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": ns}}
    policy = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
        "validations": [validation],
        **spec,
    }
    binding = {"policyName": ns, "validationActions": ["Deny"]}
    for plural, body in (
        ("validatingadmissionpolicies", policy),
        ("validatingadmissionpolicybindings", binding),
    ):
        api.api.must("POST", ADMISSION + plural, {"metadata": {"name": ns}, "spec": body})
    probe, dry_run = core(ns, "configmaps"), {"dryRun": "All"}
    assert until(
        lambda: REFUSED_BY in api.api.request("POST", probe, config_map("probe"), query=dry_run).message,
        PATIENCE,
    )


@case(releases=BOTH)
def reason_gives_the_status(api: Conversation, ns: str) -> None:
    """A validation with the reason Forbidden refuses with 403."""
    _install(api, ns, {"expression": "false", "message": "never", "reason": "Forbidden"})
    assert api.request("POST", core(ns, "configmaps"), config_map()).reason == "Forbidden"


@case(releases=BOTH)
def deletions_have_the_old_object(api: Conversation, ns: str) -> None:
    """A deletion is judged by oldObject; object is null."""
    kept = "request.operation == 'DELETE' && object == null && oldObject.metadata.name == 'one'"
    _install(api, ns, {"expression": kept, "reason": "Forbidden"})
    assert api.request("POST", core(ns, "configmaps"), config_map()).status == 403
    assert api.request("DELETE", core(ns, "configmaps", "one")).status == 404

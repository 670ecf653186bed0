"""Apply the policies of eventing/admission to a new object without a server, for files and tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from muster.data import EVENTING
from muster.objects import yaml_files
from muster.simulator.apiserver.admission.policies import Attributes, mutated
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.kinds import Gates, Kind, builtin, kinds_of
from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.schemas import object_meta, resource_definitions

ADMISSION = EVENTING / "admission"
RELEASE = "1.37"
GROUP = "muster.dev/group"


def marked(obj: Object, namespace_labels: Mapping[str, str]) -> Object:
    """Return a copy of a new Job or JobSet with the group labels that the policies write."""
    copy: Object = copied(obj)
    for template, after in zip(*map(_pod_templates, (copy, admitted(obj, namespace_labels))), strict=True):
        group = ((after.get("metadata") or {}).get("labels") or {}).get(GROUP)
        if group is not None:
            metadata = template["metadata"] = template.get("metadata") or {}
            metadata["labels"] = {**(metadata.get("labels") or {}), GROUP: group}
    return copy


def _pod_templates(obj: Object) -> list[Object]:
    jobs = [obj] if obj["kind"] == "Job" else [job["template"] for job in obj["spec"]["replicatedJobs"]]
    return [job["spec"]["template"] for job in jobs]


def admitted(obj: Object, namespace_labels: Mapping[str, str]) -> Object:
    """Return a copy of a new Job, JobSet or Pod as the policies leave it, empty fields left out."""
    kind = _kinds()[obj["kind"]]
    read = Decoder(kind, object_meta(RELEASE)).read(copied(obj))
    creation = Attributes(kind, {"metadata": {"labels": dict(namespace_labels)}})
    policies = [body for body in _shipped() if body["kind"] == "MutatingAdmissionPolicy"]
    bindings = [body for body in _shipped() if body["kind"] == "MutatingAdmissionPolicyBinding"]
    return mutated(read, creation, policies, bindings)


@cache
def _kinds() -> Mapping[str, Kind]:
    custom = [kind for crd in resource_definitions("jobset") for kind in kinds_of(crd, object_meta(RELEASE))]
    return {kind.kind: kind for kind in [*builtin(RELEASE, Gates()), *custom]}


@cache
def _shipped() -> tuple[Object, ...]:
    files = sorted(ADMISSION.glob("*.yaml"))
    return tuple(document for file in files for document in yaml_files.load_all(file.read_text()) if document)

"""Names that stay the same for ever: a changed recipe orphans everything made under the old one."""

from __future__ import annotations

UID_CHARACTERS = 8
LABEL_VALUE_LIMIT = 63
_NAME_LIMIT = 253
_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def pod_group_name(owner: str, group: str, uid: str, suffix: str = "") -> str:
    """The PodGroup of a group: `<owner>-<group>-<uid8><suffix>`, as stamp-pods writes it on pods.

    Args:
        owner: name of the JobSet, or of the Job where there is no JobSet.
        group: the mark.
        uid: UID of the same JobSet or Job; its first 8 characters tell rebuilt owners apart.
        suffix: "" or `-<job index>` or `-<block>`.
    """
    return f"{owner}-{group}-{uid[:UID_CHARACTERS]}{suffix}"


def job_workload_name(job: str, uid: str) -> str:
    """The Workload of a plain Job, by the Job controller's own recipe, so that both find each other's.

    Source: computeWorkloadName in pkg/controller/job/job_scheduling_manager.go, Kubernetes v1.37.1: the job's
    name, cut to leave room, and the safely encoded FNV-1a hash of `(types.UID)` followed by the UID.
    """
    hashed = _safe_encode(str(fnv1a_32(f"(types.UID){uid}".encode())))
    return f"{job[: _NAME_LIMIT - len(hashed) - 1]}-{hashed}"


def label_value(name: str) -> str:
    """A name as a label value: at most 63 characters, ending as a label value must.

    A Workload's name may be longer (a Job's 63 characters and a hash); the label is for people who select.
    """
    return name[:LABEL_VALUE_LIMIT].rstrip("-._")


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bits."""
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


def _safe_encode(text: str) -> str:
    """SafeEncodeString of k8s.io/apimachinery/pkg/util/rand: letters and digits that spell no words."""
    return "".join(_SAFE_ALPHABET[ord(character) % len(_SAFE_ALPHABET)] for character in text)

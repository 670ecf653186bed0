"""Makes the templates of the Helm chart from the text of eventing/, with its comments.

Each file becomes one template: some of its lines are replaced by values, and a condition is put around it
where an overlay or a component adds or leaves out the file. What the values do is in
chart/templates/_helpers.tpl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml


class TemplateError(ValueError):
    """A file of eventing/ lacks a line that a value replaces, or keeps a name that a value must replace."""


@dataclass(frozen=True)
class Rule:
    """A replacement.

    Attributes:
        old: regular expression, with MULTILINE; it must occur, unless `optional`.
        new: what takes its place; STEP stands for the step of the file.
        optional: whether a file may do without it.
    """

    old: str
    new: str
    optional: bool = False


@dataclass(frozen=True)
class Family:
    """Files of eventing/ that become templates in the same way.

    Attributes:
        sources: glob below eventing/; a file belongs to the first family whose glob it matches.
        target: path below templates/; STEM stands for the name of the file without `.yaml`.
        rules: replacements, in their order.
        condition: `if` around the template; empty if it always applies. STEP as in a rule.
        step: what STEP stands for; None for the name of the file.
    """

    sources: str
    target: str
    rules: tuple[Rule, ...] = ()
    condition: str = ""
    step: str | None = None


def templates(eventing: Path) -> dict[str, str]:
    """Return the text of every template, by its path below templates/.

    Raises:
        TemplateError: a file lacks a line that a value replaces, or keeps a name that a value must replace.
        OSError: a file cannot be read.
    """
    made: dict[str, str] = {}
    seen: set[Path] = set()
    for family in (*_sources_and_steps(), *_rights(), *_choices(eventing)):
        for path in _files(eventing, family):
            if path not in seen:
                seen.add(path)
                made[family.target.replace("STEM", path.stem)] = _template(path, family)
    return made


def _files(eventing: Path, family: Family) -> Iterator[Path]:
    found = sorted(eventing.glob(family.sources))
    if not found:
        raise TemplateError(f"{eventing / family.sources}: No such file")
    return (path for path in found if path.name != "kustomization.yaml")


def _template(path: Path, family: Family) -> str:
    text = path.read_text()
    step = path.stem if family.step is None else family.step
    for rule in (*family.rules, *_EVERYWHERE):
        text, count = re.subn(rule.old, rule.new.replace("STEP", step), text, flags=re.MULTILINE)
        if not count and not rule.optional:
            raise TemplateError(f"{path}: no line matches {rule.old}")
    if left := re.search(r"muster-system|muster/muster|team-a", text):
        raise TemplateError(f"{path}: no value replaces {left[0]}")
    return _if(family.condition.replace("STEP", step), text) if family.condition else text


def _if(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def _only(condition: str, old: str, *, optional: bool = False) -> Rule:
    """Return the rule that puts a condition around whole lines; `old` has no groups."""
    return Rule(rf"(?P<lines>{old})", _if(condition, r"\g<lines>"), optional)


# Regular expressions and actions that several families share.
_ENABLED = 'include "muster.enabled" (list . "STEP")'
_OF_STEP = f"and (not .Values.oneService) ({_ENABLED})"
_OF_RESIZE_GANG = 'and .Values.suspendAfterTimeout (include "muster.enabled" (list . "resize-gang"))'
_FIRST_DOCUMENT = r"\A(?:.*\n)*?(?=---\n)"
_ROLE_KIND = '{{ include "muster.role" . }}'
_SUFFIX = '{{ include "muster.suffix" . }}'
_KNATIVE_SERVICE = r"ref: \{apiVersion: serving.knative.dev/v1, kind: Service, name: "

_EVERYWHERE = (
    Rule(
        r"(kind: Broker, name: muster), namespace: muster-system\}",
        r'\1{{ include "muster.refNamespace" . }}}',
        optional=True,
    ),
    Rule(r": muster-system(?=[,}]|$)", ": {{ .Release.Namespace | quote }}", optional=True),
    Rule("muster-system", "{{ .Release.Namespace }}", optional=True),
)
"""Of every file, after the rules of its family."""

_CONTAINER = (
    Rule("image: muster/muster$", 'image: {{ include "muster.image" . }}'),
    Rule(
        r"^(?P<env> +- \{name: MALLOC_MMAP_THRESHOLD_, .*\n)",
        r"\g<env>" '        {{- include "muster.env" (list . "STEP") | nindent 8 }}\n',
    ),
    Rule(
        r"^          requests: .*\n          limits: .*\n",
        '          {{- include "muster.resources" (list . "STEP") | nindent 10 }}\n',
    ),
)
_DELIVERY = (
    Rule(
        r"^    retry: .*\n(?:    .*\n)*?    timeout: .*\n",
        '    {{- include "muster.delivery" (list . "STEP") | nindent 4 }}\n',
    ),
    Rule(
        rf"^      {_KNATIVE_SERVICE}dead-letter(?:, namespace: muster-system)?\}}$",
        '      {{- include "muster.sink" (list . "STEP") | nindent 6 }}',
    ),
)
_SUBSCRIBER = Rule(
    rf"^    {_KNATIVE_SERVICE}[a-z-]+\}}$",
    '    {{- include "muster.subscriber" (list . "STEP") | nindent 4 }}',
)
_SCHEDULE = Rule('schedule: ".*"', "schedule: {{ .Values.sweep.schedule | quote }}")
_NAMESPACES = Rule(
    r"^  namespaceSelector: \{\}$", '  {{- include "muster.namespaceSelector" . | nindent 2 }}'
)
_GROUP_VERSION = Rule("v1beta1, kind", '{{ include "muster.groupVersion" . }}, kind')
_NO_CLUSTER_RUNTIMES = _only('not (include "muster.own" .)', r"^  - .*kind: ClusterTrainingRuntime\}\n")

_OWN_ACCOUNT = _only("not .Values.oneService", _FIRST_DOCUMENT)
_SUBJECT = Rule(
    "kind: ServiceAccount, name: ([a-z-]+),",
    r'kind: ServiceAccount, name: {{ include "muster.account" (list . "\1") }},',
)
_ROLE = (
    Rule(
        r"^kind: ClusterRole(Binding|)\nmetadata:\n  name: (\S+)\n",
        rf"kind: {_ROLE_KIND}\1"
        "\nmetadata:\n"
        r"  name: \2"
        '\n  {{- include "muster.roleNamespace" . }}\n',
    ),
    Rule("kind: ClusterRole, name", f"kind: {_ROLE_KIND}, name"),
)
_CLUSTER_NAMES = Rule("^(  (?:name|policyName): muster-[a-z-]+)$", rf"\1{_SUFFIX}")
_USER = Rule(
    "serviceaccount:muster-system:([a-z-]+)'",
    r"""serviceaccount:muster-system:{{ include "muster.account" (list . "\1") }}'""",
)
_OWN_EVENTS = _only(
    "not .Values.oneService", r"^    - .*operations: \[CREATE\], resources: \[events\]\}\n", optional=True
)
_MUTATING = (
    Rule(r"(\n---\n(?:.*\n)*?  name: muster-[a-z-]+)$", rf"\1{_SUFFIX}"),
    Rule("^(  policyName: .*)$", r"\1" '\n  {{- include "muster.matchResources" . }}'),
    _only(".Values.admissionPolicies", _FIRST_DOCUMENT),
)


def _sources_and_steps() -> tuple[Family, ...]:
    """Return the families of base/ and triggers/."""
    composite = "overlays/composite-pod-groups/source.yaml"
    return (
        Family("base/broker.yaml", "broker.yaml", _DELIVERY, step=""),
        Family("base/sweep.yaml", "sweep.yaml", (_SCHEDULE,)),
        Family("base/dead-letter.yaml", "functions/STEM.yaml", _CONTAINER, _OF_STEP),
        Family("base/functions/*.yaml", "functions/STEM.yaml", _CONTAINER, _OF_STEP),
        Family("base/sources/groups.yaml", "sources/STEM.yaml", (_NAMESPACES, _GROUP_VERSION)),
        Family("base/sources/trainjobs.yaml", "sources/STEM.yaml", (_NAMESPACES, _NO_CLUSTER_RUNTIMES)),
        Family("base/sources/*.yaml", "sources/STEM.yaml", (_NAMESPACES,)),
        Family(composite, "sources/composite-pod-groups.yaml", (_NAMESPACES,), ".Values.compositePodGroups"),
        Family("triggers/*.yaml", "triggers/STEM.yaml", (_SUBSCRIBER, *_DELIVERY), _ENABLED),
    )


def _rights() -> tuple[Family, ...]:
    """Return the families of rbac/ and security/."""
    gateways = Rule(r"values: \[.*\]$", "values: {{ .Values.networkPolicy.namespaces | toJson }}")
    pods = Rule(r"podSelector: \{\}$", 'podSelector: {{ include "muster.pods" . }}')
    return (
        Family("rbac/source.yaml", "rbac/STEM.yaml", _ROLE),
        Family("rbac/dead-letter.yaml", "rbac/STEM.yaml", (_OWN_ACCOUNT, _SUBJECT), _ENABLED),
        Family("rbac/*.yaml", "rbac/STEM.yaml", (_OWN_ACCOUNT, *_ROLE, _SUBJECT), _ENABLED),
        Family(
            "security/network-policy.yaml", "STEM.yaml", (gateways, pods), ".Values.networkPolicy.enabled"
        ),
        Family(
            "security/accounts/*.yaml", "accounts/STEM.yaml", (_OWN_EVENTS, _CLUSTER_NAMES, _USER), _ENABLED
        ),
    )


def _choices(eventing: Path) -> tuple[Family, ...]:
    """Return the families of admission/, and of what overlays and components add."""
    native = "overlays/native-jobs/native-jobs.yaml"
    shared, suspend = "components/one-service", "components/suspend-after-timeout"
    functions = Rule(r"args: \[.*\]$", 'args: [{{ include "muster.functions" . }}]')
    namespace = Rule("team-a", "{{ .Release.Namespace }}")
    one = ".Values.oneService"
    return (
        Family("admission/mark-jobs.yaml", "admission/STEM.yaml", (_of_a_jobset(eventing), *_MUTATING)),
        Family("admission/*.yaml", "admission/STEM.yaml", _MUTATING),
        Family(native, "admission/STEM.yaml", _MUTATING, ".Values.nativeJobs"),
        Family(f"{shared}/account.yaml", "one-service/STEM.yaml", (), one),
        Family(f"{shared}/events.yaml", "one-service/STEM.yaml", (_CLUSTER_NAMES,), one),
        Family(f"{shared}/service.yaml", "one-service/STEM.yaml", (functions, *_CONTAINER), one, step=""),
        Family("components/event-policy/event-policy.yaml", "STEM.yaml", (), ".Values.eventPolicy"),
        Family(
            f"{suspend}/policy.yaml",
            "suspend-after-timeout/STEM.yaml",
            (_CLUSTER_NAMES, _USER),
            _OF_RESIZE_GANG,
        ),
        Family(
            f"{suspend}/role.yaml", "suspend-after-timeout/STEM.yaml", (*_ROLE, _SUBJECT), _OF_RESIZE_GANG
        ),
        Family(
            "overlays/one-namespace/cluster-scoped.yaml",
            "rbac/STEM.yaml",
            (namespace,),
            'include "muster.own" .',
        ),
    )


def _of_a_jobset(eventing: Path) -> Rule:
    """Return the rule that adds the condition of the overlay native-jobs to the policy mark-jobs."""
    kustomization = yaml.safe_load((eventing / "overlays/native-jobs/kustomization.yaml").read_text())
    ((operation,),) = (yaml.safe_load(patch["patch"]) for patch in kustomization["patches"])
    lines = yaml.safe_dump([operation["value"]], sort_keys=False, width=1000).splitlines(keepends=True)
    condition = "".join(f"  {line}" for line in lines).replace("\\", r"\\")
    return Rule("^(?=  variables:$)", _if(".Values.nativeJobs", condition))

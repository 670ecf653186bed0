"""Renders the templates of the Helm chart without helm, to compare them with the overlays.

The actions that release/templates.py writes are evaluated here; the helpers of
release/chart/templates/_helpers.tpl are written again in Python. test_chart.py compares both with helm itself
(marked `real`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from muster.objects import yaml_files

_ACTION = re.compile(r"(?P<trimmed>\s*\{\{-|\{\{) (?P<code>.*?) \}\}")
_TOKEN = re.compile(r'[()]|"[^"]*"|[^\s()]+')
FUNCTIONS = (
    "create-workload",
    "create-pod-groups",
    "patch-pods",
    "resize-gang",
    "emit-conditions",
    "mark-runtime",
    "dead-letter",
)
"""In the order of the container's arguments."""


@dataclass(frozen=True)
class Installation:
    """A release of the chart.

    Attributes:
        values: all values, defaults included.
        namespace: of the release.
    """

    values: Mapping[str, Any]
    namespace: str = "muster-system"

    def render(self, template: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of a template."""
        yield from (made for made in yaml_files.load_all(self._text(template)) if made)

    def _text(self, template: str) -> str:
        written: list[str] = []
        kept = [True]
        position = 0
        for action in _ACTION.finditer(template):
            if kept[-1]:
                written.append(template[position : action.start()])
            position = action.end()
            code = action["code"]
            if code.startswith("if "):
                kept.append(kept[-1] and bool(self._evaluate(code.removeprefix("if "))))
            elif code == "end":
                kept.pop()
            elif kept[-1]:
                written.append(self._piped(code))
        return "".join(written) + template[position:]

    def _piped(self, code: str) -> str:
        expression, *functions = code.split(" | ")
        value = self._evaluate(expression)
        for function in functions:
            name, *arguments = function.split()
            value = _PIPES[name](value, *map(int, arguments))
        return str(value)

    def _evaluate(self, expression: str) -> Any:
        return self._call(iter(_TOKEN.findall(expression)))

    def _call(self, unread: Iterator[str]) -> Any:
        """Evaluate words up to the end or a closing parenthesis."""
        words: list[Any] = []
        for word in unread:
            if word == ")":
                break
            words.append(self._call(unread) if word == "(" else self._word(word))
        if callable(words[0]):
            return words[0](*words[1:])
        (value,) = words
        return value

    def _word(self, word: str) -> Any:
        if word.startswith('"'):
            return word.strip('"')
        if word == ".":
            return self
        if word == ".Release.Namespace":
            return self.namespace
        if word.startswith(".Values."):
            value: Any = self.values
            for name in word.removeprefix(".Values.").split("."):
                value = value[name]
            return value
        return _FUNCTIONS[word]

    @property
    def own(self) -> bool:
        """Whether Muster works in the namespace of the release only."""
        return bool(self.values["namespaces"] == "Own")

    def enabled(self, function: str) -> bool:
        """Whether a function is installed."""
        if function == "dead-letter":
            return not self.values["delivery"]["deadLetterSink"]
        return bool(self.values["steps"][function]["enabled"]) and not (
            self.own and function == "mark-runtime"
        )

    def of_step(self, step: str, field: str) -> Mapping[str, Any]:
        """The values of one step, which take precedence over those of all."""
        values: Mapping[str, Any] = self.values["steps"].get(step, {}).get(field, {})
        return values


_PODS_OF_FUNCTIONS = (
    "{matchExpressions: [{key: serving.knative.dev/service, operator: In, values: [create-pod-groups, "
    "create-workload, dead-letter, emit-conditions, muster, patch-pods, resize-gang]}]}"
)


def _include(helper: str, argument: Any) -> str:
    if isinstance(argument, Installation):
        return _OF_ALL[helper](argument)
    return _OF_ONE[helper](*argument)


def _image(of: Installation) -> str:
    image = of.values["image"]
    return (
        f"{image['repository']}:{image['tag']}"
        if "tag" in image
        else f"{image['repository']}@{image['digest']}"
    )


def _namespace_selector(of: Installation) -> str:
    selectors = {"All": "{}", "Labelled": "{matchLabels: {muster.dev/gang-jobs: enabled}}"}
    selector = selectors.get(of.values["namespaces"])
    return f"namespaceSelector: {selector}" if selector else ""


def _match_resources(of: Installation) -> str:
    labels = f"{{kubernetes.io/metadata.name: {json.dumps(of.namespace)}}}"
    return f"\n  matchResources: {{namespaceSelector: {{matchLabels: {labels}}}}}" if of.own else ""


def _subscriber(of: Installation, step: str) -> str:
    shared = of.values["oneService"]
    ref = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "muster" if shared else step}
    return yaml.safe_dump({"ref": ref} | ({"uri": f"/{step}"} if shared else {}))


def _sink(of: Installation, step: str) -> str:
    if given := of.values["delivery"]["deadLetterSink"]:
        return yaml.safe_dump(given)
    subscriber = yaml_files.load(_subscriber(of, "dead-letter"))
    if not step and not of.own:
        subscriber["ref"]["namespace"] = of.namespace
    return yaml.safe_dump(subscriber)


def _delivery(of: Installation, step: str) -> str:
    of_all = {name: value for name, value in of.values["delivery"].items() if name != "deadLetterSink"}
    return yaml.safe_dump({**of_all, **of.of_step(step, "delivery")})


def _resources(of: Installation, step: str) -> str:
    usual = of.values["resources"] if step else of.values["sharedResources"]
    return yaml.safe_dump({**usual, **of.of_step(step, "resources")})


def _env(of: Installation, function: str) -> str:
    own = {"MUSTER_NAMESPACE": of.namespace} if of.own and function != "dead-letter" else {}
    values = {**own, **of.values["env"], **of.of_step(function, "env")}
    return (
        yaml.safe_dump([{"name": name, "value": str(value)} for name, value in values.items()])
        if values
        else ""
    )


def _nindent(text: str, spaces: int) -> str:
    return "".join(f"\n{' ' * spaces}{line}" for line in text.splitlines())


_PIPES: Mapping[str, Callable[..., str]] = {"nindent": _nindent, "quote": json.dumps, "toJson": json.dumps}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "and": lambda *values: all(values),
    "not": lambda value: not value,
    "list": lambda *values: values,
    "include": _include,
}
_OF_ALL: Mapping[str, Callable[[Installation], str]] = {
    "muster.pods": lambda of: _PODS_OF_FUNCTIONS if of.own else "{}",
    "muster.own": lambda of: "true" if of.own else "",
    "muster.image": _image,
    "muster.suffix": lambda of: f"-{of.namespace}" if of.own else "",
    "muster.refNamespace": lambda of: "" if of.own else f", namespace: {json.dumps(of.namespace)}",
    "muster.role": lambda of: "Role" if of.own else "ClusterRole",
    "muster.roleNamespace": lambda of: f"\n  namespace: {json.dumps(of.namespace)}" if of.own else "",
    "muster.namespaceSelector": _namespace_selector,
    "muster.matchResources": _match_resources,
    "muster.groupVersion": lambda of: "v1alpha2" if of.values["kubernetes"] == "1.36" else "v1beta1",
    "muster.functions": lambda of: ", ".join(filter(of.enabled, FUNCTIONS)),
}
_OF_ONE: Mapping[str, Callable[[Installation, str], str]] = {
    "muster.enabled": lambda of, function: "true" if of.enabled(function) else "",
    "muster.account": lambda of, function: "muster" if of.values["oneService"] else function,
    "muster.subscriber": _subscriber,
    "muster.sink": _sink,
    "muster.delivery": _delivery,
    "muster.resources": _resources,
    "muster.env": _env,
}

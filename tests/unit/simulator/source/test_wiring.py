"""An ApiServerSource is parsed as Knative parses it, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kustomize import UnsupportedManifestError
from muster.simulator.source import Mode, SourceSpec
from muster.simulator.source.wiring import selector_text


def _source(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "groups", "namespace": "muster-system"}
    spec = {"resources": [{"apiVersion": "v1", "kind": "Pod"}], **spec}
    return {
        "apiVersion": "sources.knative.dev/v1", "kind": "ApiServerSource", "metadata": metadata, "spec": spec
    }  # fmt: skip


def test_reference_is_the_default_mode() -> None:
    """Knative's default sends references."""
    assert SourceSpec.from_manifest(_source()).mode is Mode.REFERENCE
    assert SourceSpec.from_manifest(_source(mode="Resource")).mode is Mode.RESOURCE


def test_no_namespace_selector_and_an_empty_one_are_opposites() -> None:
    """Unset is the source's own namespace, `{}` is every one."""
    assert SourceSpec.from_manifest(_source()).namespaces is None
    assert SourceSpec.from_manifest(_source(namespaceSelector={})).namespaces == ""
    chosen = SourceSpec.from_manifest(_source(namespaceSelector={"matchLabels": {"team": "a"}}))
    assert chosen.namespaces == "team=a"


def test_overrides_are_put_on_every_event() -> None:
    """`ceOverrides.extensions` distinguishes clusters whose API servers have the same address."""
    spec = SourceSpec.from_manifest(_source(ceOverrides={"extensions": {"cluster": "east"}}))
    assert spec.extensions == {"cluster": "east"}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("apiVersion", "v1/../v1"),
        ("apiVersion", "../v1"),
        ("apiVersion", "batch/v1?x=y"),
        ("apiVersion", "v1/"),
        ("kind", "configmaps/../secret"),
        ("kind", ""),
        ("kind", "Pod?x"),
        ("kind", "x" * 10_000),
    ],
)
def test_no_kind_is_another_path(field: str, text: str) -> None:
    """Group, version and plural are parts of a URL."""
    kinds = [{"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod", field: text}]
    with pytest.raises(UnsupportedManifestError, match=rf"\bgroups\b.*spec.resources.1..{field}") as refused:
        SourceSpec.from_manifest(_source(resources=kinds))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"spec": None}, "spec.resources", id="without a spec"),
        pytest.param({"spec": []}, "spec.resources", id="whose spec is a list"),
        pytest.param({"metadata": {"name": "groups"}}, "metadata.namespace", id="of no namespace"),
        pytest.param(
            {"metadata": {"name": "groups", "namespace": "a/secrets?x="}},
            "metadata.namespace",
            id="whose namespace would lead to other objects",
        ),
    ],
)
def test_a_missing_field_of_a_source_is_named(change: dict[str, Any], field: str) -> None:
    """Kustomizations of others are read too."""
    with pytest.raises(UnsupportedManifestError, match=f"ApiServerSource groups: {field}"):
        SourceSpec.from_manifest({**_source(), **change})


@pytest.mark.parametrize("field", ["owner", "filters", "unheard"])
def test_ignored_fields_are_refused(field: str) -> None:
    """A source that quietly sends more than its YAML asks for would hide a mistake until it is deployed."""
    with pytest.raises(UnsupportedManifestError, match=rf"\bgroups\b.*\b{field}\b"):
        SourceSpec.from_manifest(_source(**{field: {}}))


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param({}, "", id="nothing selects everything"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels are equalities"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a", id="Exists is the key"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a", id="DoesNotExist is !key"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]},
            "a in (1,2)",
            id="In lists the values",
        ),
        pytest.param(
            {
                "matchLabels": {"b": "1"},
                "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["none"]}],
            },
            "b=1,a notin (none)",
            id="labels and expressions are joined",
        ),
    ],
)
def test_selectors_are_spelled_as_a_query(selector: dict[str, Any], text: str) -> None:
    """A LabelSelector and its query parameter mean the same."""
    assert selector_text(selector) == text

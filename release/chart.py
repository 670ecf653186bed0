"""The overlays with the image of a release: as manifests, and as the templates of the Helm chart."""

from __future__ import annotations

import re

import yaml

from muster.simulator.overlays import built

OVERLAYS = ("cluster", "composite-pod-groups", "kubernetes-1.36", "native-jobs", "one-service")
"""The overlays of a release; the others are to be copied, since they name someone's namespace or registry."""

_VALUES = """\
# The image of all functions. The digest is that of the release.
image: {image}

# What is installed; eventing/README.md says which cluster needs which: {overlays}.
overlay: cluster
"""
_NAMESPACE = re.compile(r"^apiVersion: v1\nkind: Namespace\n(?:.+\n)+?---\n", re.MULTILINE)


def manifest_text(overlay: str, version: str, image: str) -> str:
    """Return what kubectl builds of an overlay, with the image of the release in every function."""
    header = f"# Muster {version}, overlay {overlay}: kubectl apply -f muster-{overlay}.yaml\n---\n"
    return header + built(overlay).read_text().replace("image: muster/muster\n", f"image: {image}\n")


def chart(version: str, image: str) -> dict[str, bytes]:
    """Return the files of the chart, by their path below its folder.

    Args:
        version: of the chart and of Muster.
        image: of all functions, `repository@sha256:…`, which values.yaml has as default.
    """
    description = {
        "apiVersion": "v2",
        "name": "muster",
        "description": "Event-driven gang scheduling for Kubernetes with Knative functions",
        "type": "application",
        "kubeVersion": ">=1.36.0-0",
        "version": version,
        "appVersion": version,
    }
    files = {
        "Chart.yaml": yaml.safe_dump(description, sort_keys=False),
        "values.yaml": _VALUES.format(image=image, overlays=", ".join(OVERLAYS)),
        **{f"templates/{overlay}.yaml": _template(overlay) for overlay in OVERLAYS},
    }
    return {name: text.encode() for name, text in files.items()}


def _template(overlay: str) -> str:
    """Return an overlay as a template, without the namespace: helm makes that of a release by itself."""
    text = _NAMESPACE.sub("", built(overlay).read_text())
    text = text.replace("{{", '{{ "{{" }}').replace("muster-system", "{{ $.Release.Namespace }}")
    text = text.replace("image: muster/muster", "image: {{ $.Values.image }}")
    return f'{{{{- if eq .Values.overlay "{overlay}" }}}}\n{text}{{{{- end }}}}\n'

"""Edits of Knative's source for a machine without pods: free ports, on loopback only.

In a pod every container has port 8080 for itself; here a second process that wants it would exit. The edits
are made in copies of the two modules, which a ``go.mod`` beside them puts in the place of the originals.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

EVENTING = "knative.dev/eventing"
PKG = "knative.dev/pkg"

EDITS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    # Health probes of every process: nothing asks them here, so any free port will do.
    (PKG, "injection/health_check.go"): (
        ("const HealthCheckDefaultPort = 8080", "const HealthCheckDefaultPort = 0"),
        ('Addr: ":" + strconv', 'Addr: "127.0.0.1:" + strconv'),
    ),
    (PKG, "observability/runtime/pprof.go"): (('Addr:    ":" + port', 'Addr:    "127.0.0.1:" + port'),),
    (PKG, "webhook/webhook.go"): (
        ('fmt.Sprint(":", wh.Options.Port)', 'fmt.Sprint("127.0.0.1:", wh.Options.Port)'),
    ),
    (EVENTING, "pkg/kncloudevents/event_receiver.go"): (
        ('net.Listen("tcp", fmt.Sprintf(":%d"', 'net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d"'),
    ),
    # The dispatcher's ports are constants; ingress and filter read theirs from the environment like this.
    (EVENTING, "pkg/reconciler/inmemorychannel/dispatcher/controller.go"): (
        ("\thttpPort      = 8080\n\thttpsPort     = 8443\n", ""),
        (
            "\t// HTTP client conf used when dispatching events\n",
            (
                '\tHTTPPort  int `envconfig:"DISPATCHER_PORT" default:"8080"`\n'
                '\tHTTPSPort int `envconfig:"DISPATCHER_PORT_HTTPS" default:"8443"`\n\n'
            ),
        ),
        ("Port:         httpPort,", "Port:         env.HTTPPort,"),
        ("Port:         httpsPort,", "Port:         env.HTTPSPort,"),
    ),
}
"""(old text, new text) by module and file; each old text occurs exactly once."""


def write_modules(folder: Path, pins: Path, originals: Mapping[str, Path]) -> Path:
    """Write edited copies of the modules; return the go.mod that builds with them (``go build -modfile``)."""
    folder.mkdir(parents=True, exist_ok=True)
    replaced = "".join(
        f"replace {module} => {_edited(folder, module, original)}\n" for module, original in originals.items()
    )
    _write(folder / "go.sum", pins.with_name("go.sum").read_text())
    modfile = folder / "go.mod"
    _write(modfile, f"{pins.read_text()}\n{replaced}")
    return modfile


def _edited(folder: Path, module: str, original: Path) -> Path:
    """Return the edited copy of a module, whose folder has the name of the original, with its version."""
    copy = folder / original.name
    if not copy.exists():
        draft = Path(tempfile.mkdtemp(dir=folder))
        shutil.copytree(original, draft, dirs_exist_ok=True, copy_function=shutil.copyfile)
        for part in (draft, *draft.rglob("*")):
            if part.is_dir():
                part.chmod(0o755)  # Go's module cache is read-only
        with contextlib.suppress(OSError):  # another process was faster
            draft.rename(copy)
        shutil.rmtree(draft, ignore_errors=True)
    for (edited_module, file), edits in EDITS.items():
        if edited_module == module:
            _write(copy / file, _edit((original / file).read_text(), edits))
    return copy


def _edit(text: str, edits: Iterable[tuple[str, str]]) -> str:
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"Knative's source has {old!r} {text.count(old)} times")
        text = text.replace(old, new)
    return text


def _write(file: Path, text: str) -> None:
    """Write a file unless it is so already; another process may read it at the same time."""
    if file.exists() and file.read_text() == text:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(file)

"""Tables in documents are held to what they list."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields

from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from tests.docs.commands import ROOT
from tests.manifests.test_observability import exported_samples
from tests.schemas.replies import REPLIES

OPERATIONS = (ROOT / "docs/operations.md").read_text()
COMPOSING = (ROOT / "docs/composing.md").read_text()


def test_every_reason_has_one_row_and_no_row_is_without_reason() -> None:
    """Users who look up a reason find what to do; a removed reason has no row."""
    items = re.findall(r"^- ((?:`\w+`(?:, )?)+): ", OPERATIONS, re.MULTILINE)
    rows = Counter(name for item in items for name in re.findall(r"`(\w+)`", item))
    assert rows == Counter(str(reason) for reason in Reason)


def test_every_metric_of_gangs_is_listed() -> None:
    """With its labels; `function` is a label of all."""
    rows = dict(re.findall(r"^\|[^|]+\| `(muster_\w+?)(?:\{([\w,]+)\})?` \|$", OPERATIONS, re.MULTILINE))
    gangs = re.compile(r"(muster_(?:gang|gave_up|owners_without_gang)\w*?)(?:_count)?")
    samples = {
        found[1]: labels for name, labels in exported_samples().items() if (found := gangs.fullmatch(name))
    }
    parts = ("_bucket", "_sum", "_created")
    counted = {name: labels - {"function"} for name, labels in samples.items() if not name.endswith(parts)}
    assert {name: set(labels.split(",")) for name, labels in rows.items()} == counted


def test_every_setting_is_listed() -> None:
    """Of the functions; a variable that none reads is not promised."""
    _, _, text = (ROOT / "functions/README.md").read_text().partition("\n## Settings\n")
    listed = re.findall(r"`(MUSTER_[A-Z_]+|KUBECONFIG)`", text.partition("\n## ")[0])
    names = {entry.name: f"MUSTER_{entry.name.upper()}" for entry in fields(Settings)}
    variables = names | {"kubeconfig": "KUBECONFIG"}
    assert Counter(listed) == Counter(variables.values())


def test_every_reply_is_listed() -> None:
    """And no other type is promised."""
    assert re.findall(r"^- \[`(dev\.muster\.[^`]+)`\]", COMPOSING, re.MULTILINE) == sorted(
        REPLIES, key=list(REPLIES).index
    )


def test_every_label_and_annotation_is_listed() -> None:
    """Those that the code spells, and no others."""
    source = "".join(path.read_text() for path in (ROOT / "shared").rglob("*.py"))
    spelled = set(re.findall(r'"(muster\.dev/[a-z-]+)"', source))
    _, _, text = COMPOSING.partition("\n## Names, labels and annotations\n")
    items = re.findall(r"^- ([^(]*) \(", text, re.MULTILINE)
    listed = [name for item in items for name in re.findall(r"`(muster\.dev/[a-z-]+)`", item)]
    assert Counter(listed) == Counter(spelled)

"""Records what Knative's broker does in the contract cases: ``python -m tests.contract.broker.record``."""

from __future__ import annotations

import sys
import traceback
from collections import defaultdict

from tests.cluster import cluster
from tests.contract.broker import answers, knative
from tests.contract.broker.case import Entries
from tests.contract.broker.cases import CASES
from tests.contract.broker.recipients import Recipients


def main() -> int:
    """Record every case, and print what has changed.

    Cases that fail are reported; their old recordings are kept.
    """
    recorded: defaultdict[str, dict[str, Entries]] = defaultdict(dict)
    broken = 0
    with cluster.running(knative.OPTIONS) as real, Recipients() as recipients:
        runs = knative.run(CASES, real, recipients)
    for case in CASES:
        before = answers.read(case)
        try:
            entries = runs[case.key].result()
        except Exception as error:  # noqa: BLE001 - one broken case must not hide the others
            broken += 1
            sys.stderr.write("".join([f"{case.subject}.{case.key}:\n", *traceback.format_exception(error)]))
            entries = before or {}
        changed = "  is new" if before is None else answers.difference(before, entries)
        if changed:
            sys.stdout.write(f"{case.subject}.{case.key}:\n{changed}\n")
        recorded[case.subject][case.key] = entries
    answers.write(recorded)
    sys.stderr.write(f"{len(CASES)} broker cases recorded\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

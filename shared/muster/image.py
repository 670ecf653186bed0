"""The command of the container image: serves the functions that it is given, behind func's server.

python -m muster.image create-workload
python -m muster.image create-workload patch-pods dead-letter
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from func_python.http import serve

from muster import steps
from muster.objects.text import printable
from muster.runtime import dead_letter, knative
from muster.runtime.config import BadSettingError
from muster.runtime.served import path_of

DEAD_LETTER = path_of(dead_letter.NAME)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, then wait for the events in work."""
    names = [*map(path_of, steps.step_names()), DEAD_LETTER]
    parser = argparse.ArgumentParser(
        prog="python -m muster.image",
        description="Serve a function at /, or several, each at a path of its own: /create-workload. "
        "The address is that of LISTEN_ADDRESS, by default port 8080.",
    )
    parser.add_argument("function", nargs="+", choices=names, help=", ".join(names), metavar="FUNCTION")
    functions = dict.fromkeys(parser.parse_args(arguments).function)

    def new() -> knative.Function:  # func knows a constructor by this name
        chosen = [steps.step_named(name) for name in functions if name != DEAD_LETTER]
        return knative.serve(chosen, dead_letters=DEAD_LETTER in functions)

    try:
        serve(new)
    except BadSettingError as error:
        parser.exit(2, f"{printable(str(error))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

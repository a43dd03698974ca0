"""Run every benchmark, or those that are named."""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks.table import machine

PROGRAMS = ("journal_step", "worker_step", "growth", "parked", "answers", "fanout", "imports")


def main() -> int:
    """Print each program's table; with ``--strict``, 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(PROGRAMS)}")
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; known are {', '.join(PROGRAMS)}")
    print(machine())
    met = True
    for name in options.names or PROGRAMS:
        table = importlib.import_module(f"benchmarks.{name}").measure()
        table.show()
        met = met and table.met
    return 1 if options.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compares answers with the wanted ones.

    python3 tests/oracle/compare.py x.want.jsonl got.jsonl

The steps are read from the trace beside the wanted answers (x.jsonl), or from --trace.
Answers are equal exactly until the limits of a case change. From then on rounding may
have cost up to one unit: times may be later by 2 us, remaining lower by 1, and where
that turns an admission into a denial the rest of the case cannot be compared. With
--exact, nothing is forgiven.

Exit status 0: they agree, 1: they differ, 2: they cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trace import Line, is_header

LATER = 2
"""Microseconds."""

FEWER = 1
"""Tokens."""

SHOWN = 20
"""Differences that are printed; the others are counted."""


def same(want: object, got: object) -> bool:
    """As JSON, where 1, 1.0 and true are three things."""
    return json.dumps(want, sort_keys=True) == json.dumps(got, sort_keys=True)


def close(want: Line, got: Line) -> bool:
    """Equal but for what rounding towards fewer tokens may do."""
    if want.keys() != got.keys():
        return False
    for name, wanted in want.items():
        had = got[name]
        if same(wanted, had):
            continue
        if type(wanted) is not int or type(had) is not int:
            return False
        lowest, highest = (wanted - FEWER, wanted) if name == "remaining" else (wanted, wanted + LATER)
        if not lowest <= had <= highest:
            return False
    return True


def just_missed(step: Line, want: Line, got: Line) -> bool:
    """Denied, though wanted admitted, for a wait that rounding made too long."""
    if want.get("allowed") is not True or got.get("allowed") is not False:
        return False
    wait = step.get("max_wait", 0) if step.get("op", "acquire") == "acquire" else 0
    retry = got.get("retry_after")
    return type(retry) is int and wait < retry <= wait + LATER


@dataclass
class Report:
    """What a comparison found."""

    compared: int = 0
    cut_short: int = 0
    differences: list[str] = field(default_factory=list)


def compare(trace: list[Line], wants: list[Line], gots: list[Line], exact: bool = False) -> Report:
    """Compares answer by answer, and leaves a case at its first difference."""
    report = Report()
    answers: Iterator[tuple[Line, Line]] = zip(wants, gots, strict=True)
    header: Line = {}
    changed = over = False
    for number, step in enumerate(trace, 1):
        if is_header(step):
            header, changed, over = step, False, False
            continue
        want, got = next(answers)
        if over:
            continue
        report.compared += 1
        if step.get("op") == "limits" and "ok" in want:
            changed = not exact
        if same(want, got) or (changed and close(want, got)):
            continue
        over = True
        if changed and just_missed(step, want, got):
            report.cut_short += 1
        else:
            report.differences.append(
                f"line {number}, in the case {json.dumps(header)}\n"
                f"  step {json.dumps(step)}\n"
                f"  want {json.dumps(want)}\n"
                f"  got  {json.dumps(got)}"
            )
    return report


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("want", type=Path, metavar="WANT")
    options.add_argument("got", type=Path, metavar="GOT")
    options.add_argument("--trace", type=Path, help="the steps, when they are not beside WANT")
    options.add_argument(
        "--exact",
        action="store_true",
        help="forgive nothing, also after a change of limits",
    )
    given = options.parse_args()
    beside = given.want.with_name(given.want.name.replace(".want.jsonl", ".jsonl"))
    try:
        trace, wants, gots = (
            read(given.trace or beside),
            read(given.want),
            read(given.got),
        )
    except (OSError, ValueError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    steps = sum(not is_header(line) for line in trace)
    if not steps == len(wants) == len(gots):
        print(
            f"compare: {steps} steps, {len(wants)} wanted answers, {len(gots)} answers",
            file=sys.stderr,
        )
        return 1
    report = compare(trace, wants, gots, given.exact)
    for difference in report.differences[:SHOWN]:
        print(difference)
    print(
        f"{report.compared} of {steps} answers compared, "
        f"{len(report.differences)} cases differ, "
        f"{report.cut_short} cases cut short after a rounding"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())

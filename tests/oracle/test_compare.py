"""Holds the comparison to what it forgives and what it does not."""

from __future__ import annotations

import unittest

from compare import compare
from trace import Line, answers


TRACE: list[Line] = [
    {"limits": ["1/s"]},
    {"at": 0},
    {"at": 0, "op": "limits", "limits": ["2/s"]},
    {"at": 0, "max_wait": 500000},
    {"at": 9},
    {"limits": ["1/s"]},
    {"at": 0},
]


class Comparing(unittest.TestCase):
    def outcome(self, at: int, change: Line, exact: bool = False) -> tuple[int, int]:
        wants = list(answers(TRACE))
        gots = [dict(want) for want in wants]
        gots[at] |= change
        report = compare(TRACE, wants, gots, exact)
        return len(report.differences), report.cut_short

    def test_exact_before_a_change_and_in_the_next_case(self) -> None:
        self.assertEqual(self.outcome(0, {}), (0, 0))
        self.assertEqual(self.outcome(0, {"reset_after": 1000001}), (1, 0))
        self.assertEqual(self.outcome(0, {"allowed": 1}), (1, 0))
        self.assertEqual(self.outcome(4, {"reset_after": 1000001}), (1, 0))

    def test_later_but_never_earlier_after_a_change(self) -> None:
        self.assertEqual(self.outcome(3, {"reset_after": 1499993}), (0, 0))
        self.assertEqual(self.outcome(3, {"reset_after": 1499993}, exact=True), (1, 0))
        self.assertEqual(self.outcome(3, {"reset_after": 1499994}), (1, 0))
        self.assertEqual(self.outcome(3, {"reset_after": 1499990}), (1, 0))
        self.assertEqual(self.outcome(3, {"remaining": 1}), (1, 0))

    def test_a_case_is_cut_short_where_rounding_denies(self) -> None:
        self.assertEqual(
            self.outcome(2, {"allowed": False, "retry_after": 500001, "wait": 0}),
            (0, 1),
        )
        self.assertEqual(
            self.outcome(2, {"allowed": False, "retry_after": 500003, "wait": 0}),
            (1, 0),
        )


if __name__ == "__main__":
    unittest.main()

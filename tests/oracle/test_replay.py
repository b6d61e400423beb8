"""Holds the replay to logs worked out by hand."""

from __future__ import annotations

import unittest

from limit import SECOND, parse
from replay import event, in_order, replay


class Replaying(unittest.TestCase):
    @staticmethod
    def line(ip: str, second: int) -> str:
        when = f"17/May/2015:10:05:{second:02} +0200"
        return f'{ip} - - [{when}] "GET /a\\"b HTTP/1.1" 200 - "-" "x [y] \\"z\\""'

    def test_lines(self) -> None:
        self.assertEqual(event(7, self.line("::1", 3)), (1431849903 * SECOND, 7, "::1"))
        common = '1.1.1.1 - a b [17/May/2015:08:05:03 +0000] "GET / HTTP/1.0" 404 12'
        self.assertEqual(event(0, common), (1431849903 * SECOND, 0, "1.1.1.1"))
        for bad in [
            "",
            "hello",
            self.line("a", 3).replace("May", "Mai"),
            self.line("a", 3)[:40],
        ]:
            self.assertIsNone(event(0, bad), bad)

    def test_order(self) -> None:
        played = in_order(
            [
                (10, 0, "a"),
                (12, 1, "b"),
                (9, 2, "c"),
                (40, 3, "d"),
                (8, 4, "e"),
                (12, 5, "f"),
            ],
            window=5,
        )
        self.assertEqual(
            [(now, number) for now, number, _ in played],
            [(9, 2), (10, 0), (12, 1), (12, 4), (12, 5), (40, 3)],
        )

    def test_decisions(self) -> None:
        lines = [
            self.line("a", 2),
            self.line("b", 1),
            "bad",
            self.line("a", 1),
            self.line("a", 2),
            self.line("a", 3),
        ]
        self.assertEqual(
            replay(lines, parse("1/2s burst 2"), 60 * SECOND),
            {
                "lines": 6,
                "bad_lines": 1,
                "admitted": 4,
                "denied": 1,
                "keys": [
                    {"key": "a", "admitted": 3, "denied": 1},
                    {"key": "b", "admitted": 1, "denied": 0},
                ],
                "decisions": "AABADA",
            },
        )


if __name__ == "__main__":
    unittest.main()

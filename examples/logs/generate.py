"""Makes the sample log: two hours of traffic to a small shop, entirely made up and always the same.

    python3 examples/logs/generate.py examples/logs/sample.log.gz
    python3 examples/logs/generate.py | less

People browse, a newsletter brings many of them at once, a scraper walks the catalogue, a client without
back-off hammers a broken endpoint. Every address is from a range set aside for benchmarks and documentation.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC)
HOURS = 2
SEED = 20260302

BROWSERS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:135.0) Gecko/20100101 Firefox/135.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/133.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    'Mozilla/5.0 (compatible; "quoted" agent; kiosk)',
)
ASSETS = ("/static/shop.css", "/static/shop.js", "/static/logo.svg", "/static/fonts/text.woff2")
NAMES = ("ada", "bruno", "chidi", "dora", "emil", "fatma", "goro", "hana")


@dataclass(frozen=True)
class Request:
    """One line of the log, before it is written."""

    second: float
    """Since the start."""
    ip: str
    method: str
    target: str
    status: int
    size: int
    user: str = "-"
    referer: str = "-"
    agent: str = BROWSERS[0]

    def line(self) -> str:
        """The line, in the combined format."""
        when = (START + timedelta(seconds=int(self.second))).strftime("%d/%b/%Y:%H:%M:%S +0000")
        agent = self.agent.replace('"', '\\"')
        request = f"{self.method} {self.target} HTTP/1.1"
        return f'{self.ip} - {self.user} [{when}] "{request}" {self.status} {self.size} "{self.referer}" "{agent}"'


class Dice:
    """Chance that is the same everywhere: only what no library may round or order in its own way."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def span(self, least: float, most: float) -> float:
        """A number between the two, small ones more often."""
        return least + (most - least) * self._random() * self._random()

    def whole(self, count: int) -> int:
        """A whole number below count."""
        return int(self._random() * count)

    def pick(self, options: tuple[str, ...]) -> str:
        return options[self.whole(len(options))]

    def happens(self, share: float) -> bool:
        return self._random() < share


def address(number: int) -> str:
    """The address of a visitor: mostly from 198.18.0.0/15, some from 2001:db8::/32."""
    if number % 9 == 0:
        return f"2001:db8:{number % 16:x}::{number:x}"
    return f"198.{18 + number % 2}.{number // 200}.{1 + number % 200}"


def page(dice: Dice) -> str:
    kind = dice.whole(10)
    if kind < 2:
        return "/"
    if kind < 7:
        return f"/products/{1 + dice.whole(300)}"
    return f"/search?q={dice.pick(('lamp', 'chair', 'desk', 'rug'))}&page={1 + dice.whole(4)}"


def visit(dice: Dice, number: int, begin: float) -> Iterator[Request]:
    """A person looks at some pages, with time to read each; the browser fetches what belongs to a page at once."""
    ip, agent = address(number), dice.pick(BROWSERS)
    user = dice.pick(NAMES) if dice.happens(0.2) else "-"
    now, referer = begin, "-"
    for count in range(2 + dice.whole(9)):
        target = page(dice)
        yield Request(now, ip, "GET", target, 200, 4000 + dice.whole(40_000), user, referer, agent)
        if count == 0:
            for asset in ASSETS:
                status = 304 if dice.happens(0.3) else 200
                yield Request(
                    now + dice.span(0, 1), ip, "GET", asset, status, 900 + dice.whole(60_000), user, target, agent
                )
        for _ in range(dice.whole(3)):
            image = f"/static/img/{dice.whole(600)}.webp"
            yield Request(now + dice.span(0, 2), ip, "GET", image, 200, 9000 + dice.whole(90_000), user, target, agent)
        referer = f"https://shop.example{target}"
        now += dice.span(3, 60)


def people(dice: Dice) -> Iterator[Request]:
    """Visits all the time, and ten times as many in the three minutes after the newsletter."""
    for number in range(1, 901):
        yield from visit(dice, number, dice.span(0, 1) * HOURS * 3600 * 3 % (HOURS * 3600))
    for number in range(901, 1161):
        yield from visit(dice, number, 4200 + dice.span(0, 180))


def scraper(dice: Dice) -> Iterator[Request]:
    """Walks the whole catalogue, several requests a second, for some minutes, and comes back from the next address."""
    for number, begin in ((50_001, 1800.0), (50_002, 5400.0)):
        now = begin
        for product in range(1, 1501):
            status = 200 if product <= 300 else 404
            target = f"/products/{product}"
            yield Request(now, f"198.19.250.{number % 100}", "GET", target, status, 3000, agent="catalogue-fetch/0.3")
            now += dice.span(0.05, 0.5)


def crawler(dice: Dice) -> Iterator[Request]:
    """Knows its manners: a page every few seconds, all day."""
    now = 7.0
    while now < HOURS * 3600:
        yield Request(now, "2001:db8:c0::1", "GET", page(dice), 200, 5000 + dice.whole(20_000), agent="PoliteBot/2.1")
        now += 4 + dice.span(0, 6)


def retry_storm(dice: Dice) -> Iterator[Request]:
    """A client polls an endpoint once in ten seconds; while that is broken, it tries again and again without a pause."""
    now = 3.0
    while now < HOURS * 3600:
        broken = 3000 <= now < 3090
        status, size = (503, 162) if broken else (200, 480)
        yield Request(now, "198.18.77.7", "POST", "/api/v1/stock", status, size, "warehouse", agent="stock-sync/1.0")
        now += 0.03 + dice.span(0, 0.04) if broken else 10


def disordered(dice: Dice, requests: list[Request]) -> list[Request]:
    """In the order in which a server writes: when a request is answered, which for a slow one is some seconds late."""
    keyed = [
        (each.second + (dice.span(1, 12) if dice.happens(0.02) else 0), place) for place, each in enumerate(requests)
    ]
    return [requests[place] for _, place in sorted(keyed)]


BROKEN: tuple[Callable[[str], str], ...] = (
    lambda line: line[: len(line) // 2],
    lambda line: line.replace("/Mar/", "/Mrz/"),
    lambda line: "",
    lambda line: "\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xFC\\x03\\x03",
)
"""What a full disk, a foreign locale or a handshake on the wrong port makes of a line."""


def log() -> str:
    """The whole log."""
    dice = Dice(SEED)
    requests = [each for source in (people, scraper, crawler, retry_storm) for each in source(dice)]
    requests.sort(key=lambda each: each.second)
    lines = [each.line() for each in disordered(dice, requests)]
    for place in range(1500, len(lines), 2000):
        lines.insert(place, BROKEN[place // 2000 % len(BROKEN)](lines[place]))
    return "".join(line + "\n" for line in lines)


def main() -> None:
    text = log().encode()
    if len(sys.argv) > 1:
        with open(sys.argv[1], "wb") as file:
            # Without a time of its own, the file is the same whenever it is made.
            file.write(gzip.compress(text, mtime=0))
    else:
        sys.stdout.buffer.write(text)


if __name__ == "__main__":
    main()

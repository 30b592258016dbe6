"""Small projects for the editors to open."""

from __future__ import annotations

from pathlib import Path

SHAPES = '''\
"""Areas of plane shapes."""

from __future__ import annotations

import math


class Circle:
    """A circle."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def area(self) -> float:
        return math.pi * self.radius * self.radius

    def scaled(self, factor: float) -> "Circle":
        return Circle(self.radius * factor)


class Square:
    """A square."""

    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side * self.side

    def scaled(self, factor: float) -> "Square":
        return Square(self.side * factor)
'''

ORDERS = '''\
"""Orders and what they cost."""


def order_total(prices, tax):
    """What an order costs, with its tax."""
    subtotal = 0
    for price in prices:
        subtotal = subtotal + price
    return subtotal * (1 + tax)


def average(values):
    count = len(values)
    return sum(values) / count


def largest_total(orders, tax):
    totals = [order_total(order, tax) for order in orders]
    return max(totals)
'''


FILES = '''\
"""Reading and writing small files."""

import json


def read_json(path, default=None):
    """Content of a JSON file."""
    if not path.exists():
        return default
    with path.open() as file:
        return json.load(file)


def write_json(path, data):
    """Write a JSON file."""
    text = json.dumps(data, indent=2)
    path.write_text(text)
    return path


def count_words(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts
'''


def make_project(folder: Path) -> Path:
    """A folder with a repository's mark and one module: nothing else can come into a prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "orders.py").write_text(ORDERS, encoding="utf-8")
    return folder

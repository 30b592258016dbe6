"""Pieces of code with holes, by which is found how a model fills in the middle."""

from __future__ import annotations

import re
from typing import NamedTuple


class FillSample(NamedTuple):
    """A hole: what is before it, after it and in it."""

    prefix: str
    suffix: str
    middle: str


_HOLES = re.compile("⟦(.*?)⟧", re.DOTALL)

_TEXTS = (
    """\
def mean(values):
    total = 0
    for value in ⟦values:⟧
        total += ⟦float(value)⟧ * 1.0
⟦    return total / len(values)
⟧
""",
    """\
class Stack:
    def __init__(self):
        self.items = ⟦[]⟧

    def push(self, ⟦item⟧):
⟦        self.items.append(item)
⟧
    def pop(self):
        return self.items.pop()
""",
    """\
function total(orders: Order[]): number {
  let sum = ⟦0;⟧
  for (const order of orders) {
    sum += order.⟦price⟧ * order.count;
⟦  }
  return sum;
⟧}
""",
    """\
import os

def read_lines(path):
    with open(⟦path⟧) as file:
⟦        lines = file.readlines()
⟧    return [line.strip() for ⟦line in lines]⟧
""",
    """\
func Max(values []int) int {
	best := ⟦values[0]⟧
	for _, value := range ⟦values⟧ {
		if value > best {
⟦			best = value
⟧		}
	}
	return best
}
""",
    """\
def count_words(text):
    counts = ⟦{}⟧
    for word in text.⟦split()⟧:
⟦        counts[word] = counts.get(word, 0) + 1
⟧    return counts
""",
    """\
fn area(shape: &Shape) -> f64 {
    match shape {
        Shape::Circle(radius) => ⟦PI * radius * radius,⟧
        Shape::Square(⟦side⟧) => side * side,
⟦    }
⟧}
""",
    """\
def load(path):
⟦    try:
⟧        with open(path) as file:
            data = json.⟦load(file)⟧
    except ⟦FileNotFoundError⟧ as error:
        return None
    return data
""",
    """\
class Point:
    def __init__(self, x, y):
        self.x = ⟦x⟧
⟦        self.y = y
⟧
    def scaled(self, ⟦factor⟧, origin=None):
        return Point(self.x * factor, self.y * factor)
""",
    """\
export async function fetchUser(id) {
  const response = await ⟦fetch(`/users/${id}`);⟧
⟦  if (!response.ok) {
    throw new Error(response.statusText);
  }
⟧  return await response.⟦json⟧();
}
""",
    """\
public int indexOf(String name) {
    for (int i = 0; i < ⟦names.size()⟧; i++) {
        if (names.get(i).equals(⟦name)) {⟧
⟦            return i;
⟧        }
    }
    return -1;
}
""",
    """\
def is_prime(number):
    if number < 2:
⟦        return False
⟧    for divisor in range(2, ⟦number⟧):
        if number % divisor == 0:
            return ⟦False⟧
    return True
""",
    """\
int sum(const int *values, int count) {
    int total = ⟦0;⟧
    for (int i = 0; i < ⟦count⟧; i++) {
⟦        total += values[i];
⟧    }
    return total;
}
""",
    """\
def merge(left, right):
    result = dict(⟦left)⟧
    for key, value in ⟦right⟧.items():
⟦        result[key] = value
⟧    return result
""",
)


def fill_samples() -> list[FillSample]:
    """All samples: holes inside lines, at the ends of lines, and of whole lines, of which every
    few in a row have some of each."""
    texts = [_holes_of(text) for text in _TEXTS]
    most = max(map(len, texts))
    return [holes[(turn + n) % len(holes)] for turn in range(most) for n, holes in enumerate(texts)]


def _holes_of(text: str) -> list[FillSample]:
    found = []
    for hole in _HOLES.finditer(text):
        before, after = text[: hole.start()], text[hole.end() :]
        found.append(FillSample(_HOLES.sub(r"\1", before), _HOLES.sub(r"\1", after), hole[1]))
    return found

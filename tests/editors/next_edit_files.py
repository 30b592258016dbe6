"""Small files in which next edits are known without a model."""

from __future__ import annotations

BASKET = '''\
"""What lies in a basket."""


def total(prices, tax):
    kept = prices
    return sum(prices) * (1 + tax)
'''
RENAMED = BASKET.replace("prices", "amounts")
SHOP = """\
from basket import total


def receipt(orders):
    return [total(order, 0.2) for order in orders]
"""
CALLS = """\
def total(prices):
    return sum(prices)


def receipt(prices, tax):
    return total(prices)


def printed(prices):
    return total(prices)
"""

/** A server that ends again and again is started again ever more slowly. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { BackOff } from "../src/backoff";

void test("each wait is twice as long, thirty seconds at most", () => {
  const backOff = new BackOff();
  const delays = Array.from({ length: 11 }, (_, second) => backOff.next(1000 * second));
  assert.deepEqual(delays, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
});

void test("a server that stayed up for a minute is started again at once", () => {
  const backOff = new BackOff();
  assert.deepEqual([backOff.next(0), backOff.next(60_000), backOff.next(120_001)], [100, 200, 100]);
});

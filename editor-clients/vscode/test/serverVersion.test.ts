/** Which servers fit the extension, and which are offered to be upgraded. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { fitOf, isOlder } from "../src/serverVersion";

const PINNED = { version: "1.10.0", protocol: 2 };

void test("the protocol decides first, then the version", () => {
  assert.equal(fitOf(PINNED, { version: "1.10.0", protocol: 2 }), "fits");
  assert.equal(fitOf(PINNED, { version: "1.11.0", protocol: 2 }), "fits");
  assert.equal(fitOf(PINNED, { version: "1.9.3", protocol: 2 }), "upgrade");
  assert.equal(fitOf(PINNED, { version: "2.0.0", protocol: 1 }), "misfit");
  assert.equal(fitOf(PINNED, { version: "1.0.0", protocol: 3 }), "ahead");
});

void test("a server that does not say its protocol or version is an old one", () => {
  assert.equal(fitOf(PINNED, { version: "1.10.0" }), "misfit");
  assert.equal(fitOf(PINNED, { protocol: 2 }), "upgrade");
});

void test("versions compare by number, and a release follows its candidates", () => {
  const inOrder = ["0.9", "1.0.0a1", "1.0.0rc1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2"];
  inOrder.slice(1).forEach((later, index) => {
    const earlier = inOrder[index] ?? "";
    assert.ok(isOlder(earlier, later), `${earlier} before ${later}`);
    assert.ok(!isOlder(later, earlier), `${later} not before ${earlier}`);
  });
  assert.ok(!isOlder("1.0", "1.0.0"));
  assert.ok(!isOlder("1.0.0+cpu", "1.0.0"));
});

/** Which next edit comes first, what it inserts, and what is left of it while it is typed. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { afterTyping, insertionOf, lastLine, nearest, type NextEdit, placeBehind } from "../src/nextEdit";

const HERE = "file:///here.py";

function at(line: number, start: number, end: number, text: string | null, uri = HERE): NextEdit {
  const range = { start: { line, character: start }, end: { line, character: end } };
  return { number: line, textDocument: { uri, version: 1 }, range, text, title: `line ${line}` };
}

function typed(line: number, start: number, end: number, text: string) {
  return { range: { start: { line, character: start }, end: { line, character: end } }, text };
}

void test("the next one below the cursor comes first, then the first of the document, then another document's", () => {
  const edits = [at(1, 0, 1, "x", "file:///other.py"), at(9, 0, 1, "x"), at(3, 0, 1, "x"), at(6, 0, 1, "x")];
  const lines = [0, 3, 4, 9, 10].map((line) => nearest(edits, HERE, line)?.number);
  assert.deepEqual(lines, [3, 3, 6, 9, 3]);
  assert.equal(nearest(edits.slice(0, 1), HERE, 5)?.textDocument.uri, "file:///other.py");
  assert.equal(nearest([], HERE, 5), undefined);
});

void test("a span that ends at the start of a line does not touch that line", () => {
  const span = (line: number, character: number) => ({ start: { line: 2, character: 1 }, end: { line, character } });
  assert.deepEqual([lastLine(span(4, 0)), lastLine(span(4, 1)), lastLine(span(2, 1))], [3, 4, 2]);
});

void test("what is inserted is found where nothing is removed", () => {
  assert.deepEqual(insertionOf(at(2, 4, 4, ", tax"), ""), { at: { line: 2, character: 4 }, text: ", tax" });
  assert.deepEqual(insertionOf(at(2, 4, 8, "(a, b)"), "(a)"), { at: { line: 2, character: 6 }, text: ", b" });
  assert.deepEqual(insertionOf(at(2, 4, 9, "a\n  b\nc"), "a\nc"), { at: { line: 3, character: 0 }, text: "  b\n" });
  assert.equal(insertionOf(at(2, 4, 10, "amount"), "prices"), undefined);
  assert.equal(insertionOf(at(2, 4, 5, ""), "x"), undefined);
  assert.equal(insertionOf(at(2, 4, 5, "x"), "x"), undefined);
  assert.equal(insertionOf(at(2, 4, 4, null), ""), undefined);
});

void test("a character is never cut in two", () => {
  const insertion = insertionOf(at(0, 0, 2, "\u{1F600}\u{1F601}"), "\u{1F600}");
  assert.deepEqual(insertion, { at: { line: 0, character: 2 }, text: "\u{1F601}" });
  assert.equal(insertionOf(at(0, 0, 2, "\u{1F601}"), "\u{1F600}"), undefined);
});

void test("what is typed of it shortens it, however it is typed", () => {
  const one = at(2, 4, 10, "amounts");
  const started = afterTyping(one, "prices", typed(2, 4, 10, "a"));
  assert.ok(started);
  assert.deepEqual(started, at(2, 4, 5, "amounts"));
  const further = afterTyping(started, "a", typed(2, 5, 5, "moun"));
  assert.ok(further);
  assert.deepEqual(further, at(2, 4, 9, "amounts"));
  assert.equal(afterTyping(further, "amoun", typed(2, 9, 9, "ts")), undefined, "nothing is left");
  assert.deepEqual(afterTyping(one, "prices", typed(2, 4, 10, "")), at(2, 4, 4, "amounts"));
  assert.equal(afterTyping(one, "prices", typed(2, 4, 10, "b")), undefined, "another text");
  assert.equal(afterTyping(one, "prices", typed(2, 10, 11, "")), undefined, "what stands behind it");
  assert.equal(afterTyping(one, "prices", typed(1, 0, 0, "a")), undefined, "elsewhere");
  assert.equal(afterTyping(at(2, 4, 10, null), "prices", typed(2, 4, 4, "a")), undefined, "a place alone");
});

void test("several lines of it can be typed, with the line ends of the document", () => {
  const one = at(2, 4, 4, "if x:\n    y()\n");
  const first = afterTyping(one, "", typed(2, 4, 4, "if x:"));
  assert.ok(first);
  const second = afterTyping(first, "if x:", typed(2, 9, 9, "\r\n    "));
  assert.ok(second);
  assert.deepEqual(second.range.end, { line: 3, character: 4 });
  const third = afterTyping(second, "if x:\r\n    ", typed(3, 4, 4, "y"));
  assert.deepEqual(third?.range, { start: { line: 2, character: 4 }, end: { line: 3, character: 5 } });
});

void test("a text ends where its last line does", () => {
  const start = { line: 3, character: 7 };
  assert.deepEqual(placeBehind(start, "abc"), { line: 3, character: 10 });
  assert.deepEqual(placeBehind(start, "a\r\nbc"), { line: 4, character: 2 });
  assert.deepEqual(placeBehind(start, "a\n"), { line: 4, character: 0 });
});

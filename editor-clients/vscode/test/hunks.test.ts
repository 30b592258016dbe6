/** Hunks stay in place under random changes: checked against plain string arithmetic. */

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Change, Hunk, Position } from "../src/hunks";
import { hunkAtLine, lineOfHunk, shiftHunk, shiftHunks } from "../src/hunks";

const CASES = 20_000;
const PIECES = ["a", "é", "😀", "\n", "\r\n", "tail", " ", "x = 1"];

/** Mulberry32: small, seeded, good enough to choose cases. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) % below;
  };
}

function positionAt(text: string, offset: number): Position {
  const lines = text.slice(0, offset).split(/\r\n|\n/);
  return { line: lines.length - 1, character: lines[lines.length - 1]?.length ?? 0 };
}

function offsetAt(text: string, position: Position): number {
  const lines = text.split(/(?<=\n)/);
  return lines.slice(0, position.line).join("").length + position.character;
}

/** Never between a carriage return and its line feed: no editor puts a position there. */
function place(text: string, random: (below: number) => number): number {
  const offset = random(text.length + 1);
  return text[offset - 1] === "\r" && text[offset] === "\n" ? offset - 1 : offset;
}

void test("a hunk follows its text or is dropped when its text is touched", () => {
  const seed = Date.now() % 1_000_000;
  const random = generator(seed);
  const words = (count: number): string => Array.from({ length: count }, () => PIECES[random(PIECES.length)]).join("");
  for (let index = 0; index < CASES; index += 1) {
    const text = words(12);
    const [from, to] = [place(text, random), place(text, random)].sort((one, other) => one - other) as [number, number];
    const [start, end] = [place(text, random), place(text, random)].sort((one, other) => one - other) as [number, number];
    const typed = words(random(3));
    if ((text.slice(0, start) + typed).endsWith("\r") || (typed === "" && text[start - 1] === "\r")) continue;
    const range = { start: positionAt(text, from), end: positionAt(text, to) };
    const hunk: Hunk = { range, oldText: text.slice(from, to), newText: "new" };
    const change: Change = { range: { start: positionAt(text, start), end: positionAt(text, end) }, text: typed };
    const after = text.slice(0, start) + typed + text.slice(end);
    const shifted = shiftHunk(hunk, change);
    const message = `seed ${seed}, case ${index}: ${JSON.stringify({ text, from, to, start, end, typed })}`;
    if (!shifted) {
      assert.ok(start < to && end > from, message);
    } else {
      const found = after.slice(offsetAt(after, shifted.range.start), offsetAt(after, shifted.range.end));
      assert.equal(found, hunk.oldText, message);
    }
  }
});

void test("several changes of one event shift every hunk once", () => {
  const hunk: Hunk = { range: at(5, 0, 6, 0), oldText: "x\n", newText: "y\n" };
  const changes = [
    { range: at(3, 0, 3, 0), text: "one\n" },
    { range: at(1, 0, 2, 0), text: "" },
    { range: at(9, 0, 9, 0), text: "late\n" },
  ];
  assert.deepEqual(shiftHunks([hunk], changes), [hunk]);
});

void test("lines of the proposal are told apart by hunk", () => {
  const hunks: Hunk[] = [
    { range: at(1, 0, 2, 0), oldText: "a\n", newText: "a\nb\nc\n" },
    { range: at(8, 0, 9, 0), oldText: "d\n", newText: "" },
  ];
  assert.equal(lineOfHunk(hunks, 1), 10);
  assert.equal(hunkAtLine(hunks, 0), 0);
  assert.equal(hunkAtLine(hunks, 5), 0);
  assert.equal(hunkAtLine(hunks, 10), 1);
});

function at(startLine: number, startCharacter: number, endLine: number, endCharacter: number): Hunk["range"] {
  return { start: { line: startLine, character: startCharacter }, end: { line: endLine, character: endCharacter } };
}

/** A next edit as the server proposes it: which one comes first, and what is left of it while it is typed. Pure. */

import type { Change, Position, Span } from "./hunks";
import { isBefore, sameText } from "./hunks";

export interface NextEdit {
  /** The server knows it by this number until its text is another one. */
  readonly number: number;
  /** `version` is null where the document is not open. */
  readonly textDocument: { readonly uri: string; readonly version: number | null };
  readonly range: Span;
  /** null where the user is only led to the place. */
  readonly text: string | null;
  readonly title: string;
}

/** A server that was started again counts anew. */
export function nameOf(one: NextEdit): string {
  return `${one.number} ${one.textDocument.uri} ${one.title}`;
}

/** The last line that a span touches. */
export function lastLine({ start, end }: Span): number {
  return end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
}

/** The one at the cursor, else the next one below, else the first of the document, else one of another file. */
export function nearest(edits: readonly NextEdit[], uri: string, cursorLine: number): NextEdit | undefined {
  const here = edits.filter((one) => one.textDocument.uri === uri);
  here.sort((one, other) => (isBefore(one.range.start, other.range.start) ? -1 : 1));
  const below = here.find((one) => lastLine(one.range) >= cursorLine);
  return below ?? here[0] ?? edits.find((one) => one.textDocument.uri !== uri);
}

/** What a next edit inserts, and where, when it removes nothing; undefined when it removes something. */
export function insertionOf(one: NextEdit, oldText: string): { at: Position; text: string } | undefined {
  if (one.text === null) return undefined;
  const before = commonStart(oldText, one.text);
  const rest = oldText.slice(before);
  if (!one.text.slice(before).endsWith(rest)) return undefined;
  const text = one.text.slice(before, one.text.length - rest.length);
  return text === "" ? undefined : { at: placeBehind(one.range.start, oldText.slice(0, before)), text };
}

/**
 * What is left of a next edit whose place held `oldText` when the user typed a part of it; undefined when the change is
 * another one.
 */
export function afterTyping(one: NextEdit, oldText: string, change: Change): NextEdit | undefined {
  const { start, end } = one.range;
  if (one.text === null || isBefore(change.range.start, start) || isBefore(end, change.range.end)) return undefined;
  const from = offsetIn(oldText, start, change.range.start);
  const to = offsetIn(oldText, start, change.range.end);
  const typed = oldText.slice(0, from) + change.text;
  const now = typed + oldText.slice(to);
  if (!startsWith(one.text, typed) || sameText(one.text, now)) return undefined;
  return { ...one, range: { start, end: placeBehind(start, now) } };
}

/** Where a text that begins at a position ends. */
export function placeBehind(start: Position, text: string): Position {
  const lines = text.split(/\r\n|\r|\n/);
  const last = lines[lines.length - 1] ?? "";
  return {
    line: start.line + lines.length - 1,
    character: last.length + (lines.length === 1 ? start.character : 0),
  };
}

/** Characters of a text that begins at `start` before a position in it. */
function offsetIn(text: string, start: Position, position: Position): number {
  if (position.line === start.line) return position.character - start.character;
  const breaks = [...text.matchAll(/\r\n|\r|\n/g)];
  const lineBreak = breaks[position.line - start.line - 1];
  return lineBreak ? lineBreak.index + lineBreak[0].length + position.character : text.length;
}

function startsWith(text: string, start: string): boolean {
  return text.replace(/\r\n?/g, "\n").startsWith(start.replace(/\r\n?/g, "\n"));
}

function commonStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  // Never between the halves of a character, or of a line break.
  const isSplit = /[\uD800-\uDBFF\r]/.test(one[length - 1] ?? "");
  return isSplit ? length - 1 : length;
}

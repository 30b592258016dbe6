/** Hunks of a proposed edit, kept in place while the document changes around them. Pure: no editor in here. */

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Span {
  readonly start: Position;
  readonly end: Position;
}

/** `range` of the document, which holds `oldText`, is to become `newText`. */
export interface Hunk {
  readonly range: Span;
  readonly oldText: string;
  readonly newText: string;
  /** What the user should look at: that the change is more than was asked for. */
  readonly note?: string | undefined;
}

/** `range` of the document, as it was before the change, became `text`. */
export interface Change {
  readonly range: Span;
  readonly text: string;
}

export function isBefore(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.character < other.character);
}

/** Where a position at or after the end of a change lies once the change is made. */
function moved(position: Position, change: Change): Position {
  const lines = change.text.split(/\r\n|\r|\n/);
  const last = lines[lines.length - 1] ?? "";
  const { start, end } = change.range;
  const line = position.line - (end.line - start.line) + lines.length - 1;
  if (position.line !== end.line) return { line, character: position.character };
  const behind = position.character - end.character;
  return { line, character: last.length + behind + (lines.length === 1 ? start.character : 0) };
}

/** The hunk after a change, or undefined when the change touched what the hunk replaces. */
export function shiftHunk<T extends { readonly range: Span }>(hunk: T, change: Change): T | undefined {
  const { start, end } = hunk.range;
  if (!isBefore(start, change.range.end)) {
    return { ...hunk, range: { start: moved(start, change), end: moved(end, change) } };
  }
  return isBefore(change.range.start, end) ? undefined : hunk;
}

/** The hunks that survive changes made one after the other, last in the document first, as editors report them. */
export function shiftHunks<T extends { readonly range: Span }>(hunks: readonly T[], changes: readonly Change[]): T[] {
  const ordered = [...changes].sort((one, other) => (isBefore(one.range.start, other.range.start) ? 1 : -1));
  return hunks.flatMap((hunk) => {
    let kept: T | undefined = hunk;
    for (const change of ordered) kept = kept && shiftHunk(kept, change);
    return kept ? [kept] : [];
  });
}

/** Index of the hunk at a line of the document with all hunks applied, else of the nearest one before it. */
export function hunkAtLine(hunks: readonly Hunk[], line: number): number {
  let added = 0;
  let found = -1;
  hunks.forEach((hunk, index) => {
    if (hunk.range.start.line + added <= line || found === -1) found = index;
    added += lineBreaks(hunk.newText) - (hunk.range.end.line - hunk.range.start.line);
  });
  return found;
}

/** Line at which a hunk starts in the document with all hunks applied. */
export function lineOfHunk(hunks: readonly Hunk[], index: number): number {
  let added = 0;
  for (const hunk of hunks.slice(0, index)) {
    added += lineBreaks(hunk.newText) - (hunk.range.end.line - hunk.range.start.line);
  }
  return (hunks[index]?.range.start.line ?? 0) + added;
}

function lineBreaks(text: string): number {
  return text.split(/\r\n|\r|\n/).length - 1;
}

/** Texts compare without regard to line endings, which an editor may hold in its own way. */
export function sameText(one: string, other: string): boolean {
  return one.replace(/\r\n?/g, "\n") === other.replace(/\r\n?/g, "\n");
}

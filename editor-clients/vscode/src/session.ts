/** One edit of one document: what the server proposes, what of it is still undecided, and its preview. */

import * as vscode from "vscode";

import type { Change, Hunk } from "./hunks";
import { hunkAtLine, lineOfHunk, sameText, shiftHunks } from "./hunks";
import { showNotes } from "./notes";
import { isPreviewTab, type Previews } from "./preview";
import type { EditResult } from "./protocol";

export class EditSession implements vscode.Disposable {
  readonly proposal: vscode.Uri;
  readonly cancellation = new vscode.CancellationTokenSource();
  private hunks: Hunk[] = [];
  private region: Hunk | undefined;
  private changesByVersion: { version: number; changes: readonly Change[] }[] = [];
  private closed = false;
  private readonly listeners: vscode.Disposable[];

  constructor(
    readonly document: vscode.TextDocument,
    region: vscode.Range,
    readonly instruction: string,
    private readonly previews: Previews,
    private readonly onClosed: (session: EditSession) => void,
  ) {
    this.proposal = previews.addressFor(document.uri);
    this.region = { range: region, oldText: document.getText(region), newText: "" };
    this.listeners = [
      vscode.workspace.onDidChangeTextDocument((event) => this.documentChanged(event)),
      vscode.window.onDidChangeVisibleTextEditors(() => showNotes(this.proposal, this.hunks)),
      vscode.window.tabGroups.onDidChangeTabs((event) => {
        if (event.closed.some((tab) => isPreviewTab(tab, this.proposal))) this.dispose();
      }),
    ];
  }

  get pending(): readonly Hunk[] {
    return this.hunks;
  }

  get isOpen(): boolean {
    return !this.closed;
  }

  async open(): Promise<void> {
    this.previews.set(this.proposal, this.document.getText());
    const name = this.document.uri.path.split("/").pop() ?? "";
    const at = this.region?.range ?? new vscode.Range(0, 0, 0, 0);
    await this.previews.show(this.document.uri, this.proposal, `${name}: ${this.instruction}`, asRange(at));
  }

  /** Shows the text generated so far in the place of the lines that it rewrites. */
  stream(text: string): void {
    if (!this.region || this.closed) return;
    const written = text.split("\n").length;
    const rest = this.region.oldText.split(/(?<=\n)/).slice(written);
    const soFar = rest.length > 0 && !text.endsWith("\n") ? `${text}\n` : text;
    this.previews.set(this.proposal, this.withHunks([{ ...this.region, newText: soFar + rest.join("") }]));
  }

  /** Takes the server's proposal, brought in line with what was typed meanwhile. */
  finish(result: EditResult): void {
    this.region = undefined;
    this.hunks = result.hunks.map(({ range, oldText, newText, note }) => ({ range, oldText, newText, note }));
    for (const { version, changes } of this.changesByVersion) {
      if (version > result.version) this.hunks = shiftHunks(this.hunks, changes);
    }
    this.redraw();
  }

  hunkAt(editor: vscode.TextEditor | undefined): Hunk | undefined {
    if (!editor) return this.hunks[0];
    const line = editor.selection.active.line;
    if (editor.document.uri.toString() === this.proposal.toString()) return this.hunks[hunkAtLine(this.hunks, line)];
    return [...this.hunks].reverse().find((hunk) => hunk.range.start.line <= line) ?? this.hunks[0];
  }

  proposalLine(hunk: Hunk): number {
    return lineOfHunk(this.hunks, this.hunks.indexOf(hunk));
  }

  /** The first line that a hunk changes, before and after. */
  linesOf(hunk: Hunk): [string, string] {
    const { start, end } = hunk.range;
    const head = this.document.lineAt(start.line).text.slice(0, start.character);
    const tail = end.line < this.document.lineCount ? this.document.lineAt(end.line).text.slice(end.character) : "";
    return [firstLine(head + hunk.oldText + tail), firstLine(head + hunk.newText + tail)];
  }

  /** Applies hunks in one undo step. Returns how many no longer fitted the document and were dropped. */
  async accept(chosen: readonly Hunk[]): Promise<number> {
    const fitting = chosen.filter((hunk) => sameText(this.document.getText(asRange(hunk.range)), hunk.oldText));
    this.hunks = this.hunks.filter((hunk) => !chosen.includes(hunk));
    const edit = new vscode.WorkspaceEdit();
    for (const hunk of fitting) edit.replace(this.document.uri, asRange(hunk.range), hunk.newText);
    const applied = fitting.length === 0 || (await vscode.workspace.applyEdit(edit));
    await this.closeWhenDecided();
    return applied ? chosen.length - fitting.length : chosen.length;
  }

  async discard(chosen: readonly Hunk[]): Promise<void> {
    this.hunks = this.hunks.filter((hunk) => !chosen.includes(hunk));
    this.redraw();
    await this.closeWhenDecided();
  }

  async closePreview(): Promise<void> {
    this.dispose();
    await this.previews.close(this.proposal);
    await vscode.window.showTextDocument(this.document, { preserveFocus: false });
  }

  dispose(): void {
    if (this.closed) return;
    this.closed = true;
    this.cancellation.cancel();
    this.listeners.forEach((listener) => void listener.dispose());
    this.onClosed(this);
  }

  private async closeWhenDecided(): Promise<void> {
    if (this.hunks.length === 0) await this.closePreview();
  }

  private documentChanged(event: vscode.TextDocumentChangeEvent): void {
    if (event.document.uri.toString() === this.proposal.toString()) showNotes(this.proposal, this.hunks);
    if (event.document !== this.document || event.contentChanges.length === 0) return;
    this.changesByVersion.push({ version: event.document.version, changes: event.contentChanges });
    if (this.region) [this.region] = shiftHunks([this.region], event.contentChanges);
    this.hunks = shiftHunks(this.hunks, event.contentChanges);
    this.redraw();
  }

  private redraw(): void {
    if (!this.closed) this.previews.set(this.proposal, this.withHunks(this.hunks));
  }

  private withHunks(hunks: readonly Hunk[]): string {
    const text = this.document.getText();
    let result = "";
    let copied = 0;
    for (const hunk of hunks) {
      result += text.slice(copied, this.document.offsetAt(asRange(hunk.range).start)) + hunk.newText;
      copied = this.document.offsetAt(asRange(hunk.range).end);
    }
    return result + text.slice(copied);
  }
}

function firstLine(text: string): string {
  return (text.split(/\r\n|\r|\n/).find((line) => line.trim() !== "") ?? "").trim();
}

export function asRange({ start, end }: Hunk["range"]): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

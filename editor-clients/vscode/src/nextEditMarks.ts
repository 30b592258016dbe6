/** How a next edit looks: its text in place where one sees it, else a sign and where to find it. */

import * as vscode from "vscode";

import { insertionOf, lastLine, type NextEdit } from "./nextEdit";
import { asRange } from "./session";

const SYMBOL = "⇥";

export class NextEditMarks implements vscode.Disposable {
  private readonly sign: vscode.TextEditorDecorationType;
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
    textDecoration: "line-through",
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    after: { backgroundColor: new vscode.ThemeColor("diffEditor.insertedTextBackground"), margin: "0 0 0 0.3em" },
  });
  private readonly inserted = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorGhostText.foreground") },
  });
  private readonly hint = vscode.window.createTextEditorDecorationType({
    after: {
      color: new vscode.ThemeColor("editorCodeLens.foreground"),
      fontStyle: "italic",
      margin: "0 0 0 2em",
    },
  });

  constructor(extension: vscode.Uri) {
    this.sign = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(extension, "media", "next-edit.svg"),
      gutterIconSize: "contain",
      overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
      overviewRulerLane: vscode.OverviewRulerLane.Center,
    });
  }

  /** The sign alone, where the text is shown by the editor itself or not at all. */
  drawSign(editor: vscode.TextEditor, line: number, title: string): void {
    this.erase(editor);
    editor.setDecorations(this.sign, [{ range: new vscode.Range(line, 0, line, 0), hoverMessage: title }]);
  }

  /** The text at its place: what goes struck out, what comes after it. */
  drawText(editor: vscode.TextEditor, one: NextEdit): void {
    this.drawSign(editor, one.range.start.line, one.title);
    const range = asRange(one.range);
    const newText = one.text ?? "";
    const oldText = editor.document.getText(range);
    const insertion = insertionOf(one, oldText);
    if (insertion) {
      const at = new vscode.Position(insertion.at.line, insertion.at.character);
      editor.setDecorations(this.inserted, [this.textAt(new vscode.Range(at, at), oldText, newText, insertion.text)]);
      return;
    }
    if (oldText !== "") editor.setDecorations(this.removed, [{ range, hoverMessage: difference(oldText, newText) }]);
    const behind = oldText.endsWith("\n") ? editor.document.lineAt(lastLine(one.range)).range.end : range.end;
    editor.setDecorations(this.added, [this.textAt(new vscode.Range(range.start, behind), oldText, newText, newText)]);
  }

  /** Where it is, after the cursor's line; its sign too where it is in this document. */
  drawHint(editor: vscode.TextEditor, one: NextEdit, uri: vscode.Uri, at: number): void {
    const { line } = one.range.start;
    const isOfThis = uri.toString() === editor.document.uri.toString();
    this.drawSign(editor, isOfThis ? line : at, one.title);
    const place = `${vscode.workspace.asRelativePath(uri, false)}:${line + 1} `;
    const text = `${SYMBOL} ${isOfThis && at === line ? "" : place}${one.title}`;
    const { end } = editor.document.lineAt(at).range;
    editor.setDecorations(this.hint, [
      { range: new vscode.Range(end, end), renderOptions: { after: { contentText: text } } },
    ]);
  }

  erase(editor: vscode.TextEditor): void {
    for (const type of [this.sign, this.removed, this.added, this.inserted, this.hint]) editor.setDecorations(type, []);
  }

  dispose(): void {
    for (const type of [this.sign, this.removed, this.added, this.inserted, this.hint]) type.dispose();
  }

  private textAt(range: vscode.Range, oldText: string, newText: string, shown: string): vscode.DecorationOptions {
    return {
      range,
      hoverMessage: difference(oldText, newText),
      renderOptions: { after: { contentText: onOneLine(shown) } },
    };
  }
}

/** A decoration has one line: the first that says something, and how many follow. */
function onOneLine(text: string): string {
  const lines = text.split(/\r\n|\r|\n/);
  if (lines[lines.length - 1] === "") lines.pop();
  const first = lines.findIndex((line) => line.trim() !== "");
  const shown = lines[Math.max(first, 0)] ?? "";
  const more = lines.length - 1 - Math.max(first, 0);
  const lineBreak = first > 0 ? "↵ " : "";
  // A blank at an end would not be shown.
  const blanks = shown.replace(/\t/g, "    ").replace(/ /g, "\u00a0");
  return `${lineBreak}${blanks}${more > 0 ? ` ↵ +${more}` : ""}`;
}

function difference(oldText: string, newText: string): vscode.MarkdownString {
  const lines = (text: string, sign: string): string[] =>
    text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r\n|\r|\n/).map((line) => sign + line);
  const body = [...lines(oldText, "-"), ...lines(newText, "+")].join("\n");
  return new vscode.MarkdownString().appendCodeblock(body, "diff");
}


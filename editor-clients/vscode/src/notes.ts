/** Notes after the changes of a preview: what goes beyond the instruction. */

import * as vscode from "vscode";

import type { Hunk } from "./hunks";
import { lineOfHunk } from "./hunks";

const noted = vscode.window.createTextEditorDecorationType({
  after: { color: new vscode.ThemeColor("editorWarning.foreground"), margin: "0 0 0 2em", fontStyle: "italic" },
});

/** Writes every hunk's note after its first line in the editors that show the proposal. */
export function showNotes(proposal: vscode.Uri, hunks: readonly Hunk[]): void {
  for (const editor of vscode.window.visibleTextEditors) {
    if (editor.document.uri.toString() !== proposal.toString()) continue;
    const lines = hunks.flatMap((hunk, index) => {
      const line = lineOfHunk(hunks, index);
      if (!hunk.note || line >= editor.document.lineCount) return [];
      const { end } = editor.document.lineAt(line).range;
      return [{ range: new vscode.Range(end, end), renderOptions: { after: { contentText: `⚠ ${hunk.note}` } } }];
    });
    editor.setDecorations(noted, lines);
  }
}

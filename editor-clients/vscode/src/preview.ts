/** Proposed texts as read-only documents, shown beside the real ones in a diff editor. */

import * as path from "node:path";
import * as vscode from "vscode";

export const PREVIEW_SCHEME = "redraft-preview";

/** At most so often is a preview redrawn while text streams in. */
const REDRAW_MS = 80;

export class Previews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  /** Before the registration, which looks for it. */
  readonly onDidChange = this.changed.event;
  private readonly waiting = new Map<string, NodeJS.Timeout>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(PREVIEW_SCHEME, this);
  private count = 0;

  /** A fresh address for a proposal to `document`; its name keeps the language's colours. */
  addressFor(document: vscode.Uri): vscode.Uri {
    this.count += 1;
    return vscode.Uri.from({ scheme: PREVIEW_SCHEME, path: `/${this.count}/${path.posix.basename(document.path)}` });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  set(uri: vscode.Uri, text: string): void {
    const key = uri.toString();
    this.texts.set(key, text);
    if (this.waiting.has(key)) return;
    this.waiting.set(
      key,
      setTimeout(() => {
        this.waiting.delete(key);
        this.changed.fire(uri);
      }, REDRAW_MS),
    );
  }

  async show(document: vscode.Uri, proposal: vscode.Uri, title: string, at: vscode.Range): Promise<void> {
    await vscode.commands.executeCommand("vscode.diff", document, proposal, title, {
      preview: true,
      selection: new vscode.Range(at.start, at.start),
    } satisfies vscode.TextDocumentShowOptions);
  }

  async close(proposal: vscode.Uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => isPreviewTab(tab, proposal));
    if (tabs.length > 0) await vscode.window.tabGroups.close(tabs);
    this.texts.delete(proposal.toString());
  }

  dispose(): void {
    this.waiting.forEach((timer) => clearTimeout(timer));
    this.registration.dispose();
    this.changed.dispose();
  }
}

export function isPreviewTab(tab: vscode.Tab, proposal: vscode.Uri): boolean {
  return tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === proposal.toString();
}

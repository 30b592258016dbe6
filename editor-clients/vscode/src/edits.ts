/** Edit with instruction: asks, requests, previews, and applies what the user accepts. */

import * as vscode from "vscode";
import { CodeActionKind, CodeActionRequest, LSPErrorCodes, ResponseError, State } from "vscode-languageclient/node";
import type { LanguageClient, Range } from "vscode-languageclient/node";

import type { InstructionBox, Preset } from "./instruction";
import type { Previews } from "./preview";
import { editProgress, editRequest, prepareEdit } from "./protocol";
import { EditSession } from "./session";

/** What the server's code action passes. */
export interface EditTarget {
  uri: string;
  range: Range;
}

export class Edits implements vscode.Disposable {
  private sessions: EditSession[] = [];

  constructor(
    private readonly client: () => LanguageClient | undefined,
    private readonly box: InstructionBox,
    private readonly previews: Previews,
  ) {}

  /** Listens to a client that was just made. */
  attach(client: LanguageClient): vscode.Disposable {
    return client.onNotification(editProgress, ({ token, text }) => {
      this.sessions.find((session) => session.proposal.toString() === token)?.stream(text);
    });
  }

  /** Whether an edit of a document is made or previewed. */
  isReviewed(document: vscode.TextDocument): boolean {
    return this.sessions.some((session) => session.document === document);
  }

  /** `given` is the target of a code action; menus pass the document's address, which the editor in front has anyway. */
  async start(given?: EditTarget | vscode.Uri): Promise<void> {
    const target = given && "range" in given ? given : undefined;
    const client = this.client();
    if (client?.state !== State.Running) {
      void vscode.window.showWarningMessage("Redraft's server is not running; its status bar item says why.");
      return;
    }
    const place = await this.place(client, target);
    if (!place) return;
    const [document, range] = place;
    void client.sendNotification(prepareEdit, {
      textDocument: client.code2ProtocolConverter.asTextDocumentIdentifier(document),
      range: client.code2ProtocolConverter.asRange(range),
    });
    const instruction = await this.box.ask(titleFor(range), this.presets(client, document, range));
    if (instruction) await this.run(client, document, range, instruction);
  }

  async acceptAll(): Promise<void> {
    const session = this.current;
    if (session) await this.accept(session, session.pending);
  }

  async discardAll(): Promise<void> {
    await this.current?.closePreview();
  }

  async acceptHunk(): Promise<void> {
    const session = this.current;
    const hunk = session?.hunkAt(vscode.window.activeTextEditor);
    if (session && hunk) await this.accept(session, [hunk]);
  }

  async discardHunk(): Promise<void> {
    const session = this.current;
    const hunk = session?.hunkAt(vscode.window.activeTextEditor);
    if (session && hunk) await session.discard([hunk]);
  }

  /** A list of the changes to tick; the others are discarded. */
  async chooseHunks(): Promise<void> {
    const session = this.current;
    if (!session) return;
    const items = session.pending.map((hunk) => {
      const [before, after] = session.linesOf(hunk);
      const label = `Line ${hunk.range.start.line + 1}`;
      const description = (hunk.note ? `⚠ ${hunk.note}: ` : "") + (after || "(removed)");
      return { label, description, detail: before || "(new)", picked: !hunk.note, hunk };
    });
    const chosen = await vscode.window.showQuickPick(items, {
      canPickMany: true,
      title: "Accept which changes?",
      onDidSelectItem: (item) => {
        const selected = items.find((one) => one === item);
        if (selected) revealLine(session.proposal, session.proposalLine(selected.hunk));
      },
    });
    if (!chosen) return;
    const hunks = chosen.map((item) => item.hunk);
    await session.discard(session.pending.filter((hunk) => !hunks.includes(hunk)));
    if (hunks.length > 0) await this.accept(session, hunks);
  }

  dispose(): void {
    [...this.sessions].forEach((session) => session.dispose());
  }

  /** The session in front: that of the active editor, else the latest. */
  private get current(): EditSession | undefined {
    const active = vscode.window.activeTextEditor?.document.uri.toString();
    const ofEditor = this.sessions.find(
      (session) => session.proposal.toString() === active || session.document.uri.toString() === active,
    );
    return ofEditor ?? this.sessions[this.sessions.length - 1];
  }

  private async place(
    client: LanguageClient,
    target: EditTarget | undefined,
  ): Promise<[vscode.TextDocument, vscode.Range] | undefined> {
    if (target) {
      const document = await vscode.workspace.openTextDocument(client.protocol2CodeConverter.asUri(target.uri));
      return [document, client.protocol2CodeConverter.asRange(target.range)];
    }
    const editor = vscode.window.activeTextEditor;
    if (!editor) {
      void vscode.window.showInformationMessage("Open the file that should change, then ask again.");
      return undefined;
    }
    return [editor.document, editor.selection];
  }

  /** The server's ready-made instructions for a range, which it offers as code actions. */
  private async presets(client: LanguageClient, document: vscode.TextDocument, range: vscode.Range): Promise<Preset[]> {
    const actions = await client.sendRequest(CodeActionRequest.type, {
      textDocument: client.code2ProtocolConverter.asTextDocumentIdentifier(document),
      range: client.code2ProtocolConverter.asRange(range),
      context: { diagnostics: [], only: [CodeActionKind.RefactorRewrite] },
    });
    return (actions ?? []).flatMap((action) => {
      const data = "data" in action ? (action.data as { instruction?: string } | undefined) : undefined;
      const instruction = data?.instruction;
      return instruction ? [{ title: action.title, instruction }] : [];
    });
  }

  private async run(
    client: LanguageClient,
    document: vscode.TextDocument,
    range: vscode.Range,
    instruction: string,
  ): Promise<void> {
    const former = this.sessions.find((session) => session.document === document);
    await former?.closePreview();
    const session = new EditSession(document, range, instruction, this.previews, (closed) => {
      this.sessions = this.sessions.filter((one) => one !== closed);
      setReviewing(this.sessions.length > 0);
    });
    this.sessions.push(session);
    setReviewing(true);
    const request = client.sendRequest(
      editRequest,
      {
        textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri), version: document.version },
        range: client.code2ProtocolConverter.asRange(range),
        instruction,
        streamToken: session.proposal.toString(),
      },
      session.cancellation.token,
    );
    await session.open();
    const progress = { location: vscode.ProgressLocation.Notification, title: `Redraft: ${instruction}`, cancellable: true };
    await vscode.window.withProgress(progress, async (_report, cancelled) => {
      cancelled.onCancellationRequested(() => session.cancellation.cancel());
      try {
        const result = await request;
        session.finish(result);
        const told = result.warning ?? "";
        const nothing = result.hunks.length === 0 ? told || "the model proposes no change" : "";
        if (nothing) void vscode.window.showInformationMessage(`Redraft: ${nothing}`);
        else if (told) void vscode.window.showWarningMessage(`Redraft: ${told}`);
      } catch (error) {
        await session.closePreview();
        if (!isCancelled(error)) void vscode.window.showErrorMessage(`Redraft: ${messageOf(error)}`);
        return;
      }
      if (session.isOpen && session.pending.length === 0) {
        await session.closePreview();
      }
    });
  }

  private async accept(session: EditSession, hunks: EditSession["pending"]): Promise<void> {
    const stale = await session.accept(hunks);
    if (stale > 0) {
      void vscode.window.showWarningMessage(`Redraft: ${stale} change(s) no longer fit the text and were left out.`);
    }
  }
}

function setReviewing(on: boolean): void {
  void vscode.commands.executeCommand("setContext", "redraft.reviewing", on);
}

function titleFor(range: vscode.Range): string {
  const first = range.start.line + 1;
  // A selection that ends at the start of a line does not mean that line.
  const last = range.end.character === 0 && !range.isSingleLine ? range.end.line : range.end.line + 1;
  return first === last ? `Edit at line ${first}` : `Edit lines ${first} to ${last}`;
}

function revealLine(uri: vscode.Uri, line: number): void {
  const editor = vscode.window.visibleTextEditors.find((one) => one.document.uri.toString() === uri.toString());
  editor?.revealRange(new vscode.Range(line, 0, line, 0), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

function isCancelled(error: unknown): boolean {
  return (
    error instanceof vscode.CancellationError ||
    (error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled)
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

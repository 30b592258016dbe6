/** The status bar item: state, model and speed at a glance, the rest in its tooltip and menu. */

import * as vscode from "vscode";
import { State as ClientState } from "vscode-languageclient/node";
import type { LanguageClient } from "vscode-languageclient/node";

import { DOCUMENTS } from "./client";
import type { State, Status } from "./protocol";
import { statusChanged, statusRequest } from "./protocol";

const ICONS: Record<State, string> = {
  ready: "zap",
  loading: "loading~spin",
  indexing: "sync~spin",
  paused: "debug-pause",
  error: "error",
  inactive: "circle-slash",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("redraft.status", vscode.StatusBarAlignment.Right, 100);
  private readonly editorListener = vscode.window.onDidChangeActiveTextEditor(() => void this.refresh());
  private client: LanguageClient | undefined;
  private latest: Status = { state: "loading", message: "starting" };

  constructor() {
    this.item.name = "Redraft";
    this.item.command = "redraft.menu";
    this.show(this.latest);
    this.item.show();
  }

  get state(): State {
    return this.latest.state;
  }

  /** Whether the document in front seems to hold secrets, so that nothing is suggested in it. */
  get heldBack(): boolean {
    const document = vscode.window.activeTextEditor?.document.uri;
    if (!document || !this.client) return false;
    const uri = this.client.code2ProtocolConverter.asUri(document);
    return this.latest.heldBack?.some((one) => one.uri === uri) ?? false;
  }

  attach(client: LanguageClient): vscode.Disposable {
    this.client = client;
    return vscode.Disposable.from(
      client.onNotification(statusChanged, (status) => this.show(status)),
      client.onDidChangeState(({ newState }) => {
        if (newState === ClientState.Running) void this.refresh();
        else if (newState === ClientState.Starting) this.show({ state: "loading", message: "starting" });
        else this.show({ state: "error", message: "the server ended and is being started again" });
      }),
    );
  }

  /** Asks the server about the document in front; undefined when no server runs. */
  async refresh(): Promise<Status | undefined> {
    if (this.client?.state !== ClientState.Running) return undefined;
    const document = vscode.window.activeTextEditor?.document;
    const asked =
      document && vscode.languages.match(DOCUMENTS, document) > 0
        ? { textDocument: this.client.code2ProtocolConverter.asTextDocumentIdentifier(document) }
        : {};
    const status = await this.client.sendRequest(statusRequest, asked).catch(() => undefined);
    if (status) this.show(status);
    return status;
  }

  show(status: Status): void {
    const wasLoading = this.latest.state === "loading";
    this.latest = status;
    if (wasLoading && status.state === "ready") {
      // What was asked for while the model was loading may have been answered with nothing.
      void vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    }
    const progress = status.index?.total ? ` ${status.index.done ?? 0}/${status.index.total}` : "";
    const faster = status.tokensPerForward ? ` ${status.tokensPerForward.toFixed(1)}×` : "";
    const suffix = status.state === "indexing" ? progress : status.state === "ready" ? faster : "";
    this.item.text = `$(${ICONS[status.state]}) Redraft${suffix}`;
    this.item.tooltip = tooltip(status);
    this.item.backgroundColor =
      status.state === "error" ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    this.item.accessibilityInformation = { label: `Redraft: ${summary(status)}` };
  }

  get summary(): string {
    return summary(this.latest);
  }

  dispose(): void {
    this.editorListener.dispose();
    this.item.dispose();
  }
}

/** One line that says how things stand, what to do when they do not, and what drafts save. */
export function summary(status: Status): string {
  const faster = withUnit(status.tokensPerForward, " tokens per forward", 1);
  const parts = [status.message, status.reason, status.remedy, status.model, faster].filter((part) => part);
  return parts.length > 0 ? `${status.state}: ${parts.join("; ")}` : status.state;
}

function tooltip(status: Status): vscode.MarkdownString {
  const rows: [string, string | undefined][] = [
    ["State", status.message ? `${status.state}: ${status.message}` : status.state],
    ["Why", status.reason],
    ["What to do", status.remedy],
    ["Held back", status.heldBack?.length ? `${status.heldBack.length} files that may hold secrets` : undefined],
    ["Model", status.model],
    ["Server", status.server ? `${status.server.url}, answered by: ${status.server.answers}` : undefined],
    ["Model of edits", status.editModel === status.model ? undefined : status.editModel],
    ["Settings", status.modelNotes?.join("; ")],
    ["Index", status.index?.files === undefined ? undefined : `${status.index.files} files`],
    ["Prompt", withUnit(status.promptTokens, " tokens at most", 0)],
    ["Tokens per forward", withUnit(status.tokensPerForward, "", 1)],
  ];
  const page = new vscode.MarkdownString("**Redraft**\n\n");
  for (const [name, value] of rows) {
    if (!value) continue;
    page.appendText(`${name}: ${value}`).appendMarkdown("\n\n");
  }
  return page;
}

function withUnit(value: number | null | undefined, unit: string, digits: number): string | undefined {
  return value === null || value === undefined ? undefined : `${value.toFixed(digits)}${unit}`;
}

/**
 * Next edits: after a change, what follows from it is shown where it belongs. One key goes there and takes it, another one
 * sends it away. A suggestion at the cursor comes first.
 */

import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";
import type { LanguageClient } from "vscode-languageclient/node";

import { DOCUMENTS } from "./client";
import { sameText, shiftHunks } from "./hunks";
import { afterTyping, insertionOf, lastLine, nameOf, nearest, type NextEdit, placeBehind } from "./nextEdit";
import { NextEditMarks } from "./nextEditMarks";
import { inlineEditShown, nextEditRequest, nextEditsChanged } from "./protocol";
import { asRange } from "./session";

const DEBOUNCE_MS = 150;
/** A model may be asked behind the last one of a chain, and a key must not wait for that. */
const LONGEST_WAIT_MS = 300;
/** So long after our answer a menu is closed that opens by itself. */
const MENU_OPENS_MS = [0, 100, 250, 500, 900];
/** What the editor asks so soon after it was told to, the user did not ask for by hand. */
const OWN_REQUESTS_MS = 500;

const NOTHING_DRAWN = { oldText: "", hasText: false, isGhost: false, drawnFor: undefined };

type Suggestions = vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

/** The cursor's place in one version of a text. */
interface Place {
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly position: vscode.Position;
}

/** An answer of the server, and what of it is on the screen. */
interface Shown {
  readonly editor: vscode.TextEditor;
  /** The document's address as the server has it. */
  readonly uri: string;
  version: number;
  edits: NextEdit[];
  current?: NextEdit;
  /** What stands at the place of the current one. */
  oldText: string;
  /** By the user: shown in full where only signs are. */
  isAskedFor: boolean;
  /** Before the editor's menu, which is closed. */
  readonly isFirst: boolean;
  /** What the marks depend on. */
  drawnFor?: string;
  hasText: boolean;
  /** Whether the editor itself shows it, as ghost text. */
  isGhost: boolean;
}

export class NextEdits implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private shown: Shown | undefined;
  private request: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Those that the user was led to or decided on. */
  private decided = new Set<string>();
  /** Those that the server knows to be shown. */
  private announced = new Set<string>();
  /** A document whose next edit the user went to. */
  private wantedIn: string | undefined;
  /** Where a suggestion is shown. */
  private suggestion: Place | undefined;
  /** Where the editor's menu is open: what waits elsewhere is not drawn beside it, for the key is the menu's. */
  private menu: Place | undefined;
  /** One is being taken: the others stay, and the next key waits for it. */
  private accepting: Promise<unknown> | undefined;
  /** One was taken or jumped to, and the next one is asked for: a key that comes meanwhile takes nothing. */
  private isAwaited = false;
  /** The text over which the user chose something in the editor's menu: the key is the menu's. */
  private chosenIn: { document: vscode.TextDocument; version: number } | undefined;
  /** When the editor was told to ask for ghost text, which is the next edit's alone. */
  private triggered = 0;
  private readonly contexts = new Map<string, boolean>();
  private readonly marks: NextEditMarks;
  private readonly listeners: vscode.Disposable[];

  constructor(
    extension: vscode.Uri,
    private readonly isReviewed: (document: vscode.TextDocument) => boolean,
  ) {
    this.marks = new NextEditMarks(extension);
    this.listeners = [
      vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.moved(textEditor)),
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => this.scrolled(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.entered(editor)),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("redraft.nextEdits")) this.askSoon();
      }),
    ];
  }

  /** Asks a client that was just made. */
  attach(client: LanguageClient): vscode.Disposable {
    this.client = client;
    this.decided.clear();
    this.announced.clear();
    const ended = new vscode.Disposable(() => {
      this.client = undefined;
      this.cancel();
      this.hide();
    });
    return vscode.Disposable.from(client.onNotification(nextEditsChanged, ({ uri }) => this.more(uri)), ended);
  }

  /**
   * Suggestions at a place; before them, whoever asks, the next edit that is shown there as ghost text: the editor asks
   * more than once for what it is told to show, and again when its menu opens, closes or selects another entry.
   */
  async suggestions(
    document: vscode.TextDocument,
    position: vscode.Position,
    isMenuOpen: boolean,
    token: vscode.CancellationToken,
    ask: (byHand: boolean) => vscode.ProviderResult<Suggestions>,
  ): Promise<Suggestions> {
    const { version } = document;
    const place = { document, version, position };
    if (isMenuOpen || this.menu) {
      this.menu = isMenuOpen ? place : undefined;
      this.draw();
    }
    const ghost = this.ghostAt(document, position);
    if (ghost) return [ghost];
    const found = await ask(Date.now() - this.triggered > OWN_REQUESTS_MS);
    // The editor shows nothing of what it does not wait for any more.
    if (token.isCancellationRequested) return found;
    const items = Array.isArray(found) ? found : (found?.items ?? []);
    this.suggestion = items.length > 0 ? place : undefined;
    this.draw();
    const later = items.length > 0 ? undefined : this.ghostAt(document, position);
    return later ? [later] : found;
  }

  /** Asks by hand: shows the next edit in full, or says that there is none. */
  async ask(): Promise<void> {
    const found = await this.refresh(true);
    if (!found) void vscode.window.showInformationMessage("Redraft: no next edit.");
  }

  /** Goes to the next edit where the cursor is elsewhere, shows it where only its sign is shown, else takes it. */
  async take(): Promise<void> {
    await this.accepting;
    const shown = this.currentlyShown;
    if (!shown && this.isAwaited) return;
    if (!shown) {
      this.hide();
      await vscode.commands.executeCommand("tab");
      return;
    }
    const { current: one, editor } = shown;
    const cursor = editor.selection.active.line;
    const isAtCursor =
      one.textDocument.uri === shown.uri && one.range.start.line <= cursor && cursor <= lastLine(one.range);
    if (one.text === null || !isAtCursor) {
      await this.jump(shown, one);
    } else if (shown.hasText) {
      await this.accept(shown, one, one.text);
    } else {
      shown.isAskedFor = true;
      this.draw();
    }
  }

  /** The editor took one that was ghost text. */
  async taken(one: NextEdit): Promise<void> {
    this.decided.add(nameOf(one));
    this.tell("redraft.nextEdit.accepted", one);
    await this.goOn(false);
  }

  /** Sends the next edit away for good. */
  async reject(): Promise<void> {
    const shown = this.currentlyShown;
    const isGhost = shown?.isGhost === true;
    if (shown) {
      this.decided.add(nameOf(shown.current));
      this.tell("redraft.nextEdit.rejected", shown.current);
    }
    this.hide();
    if (isGhost) await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    if (shown) await this.refresh(false);
  }

  /** Hides the suggestion at the cursor; a next edit may have waited behind it. */
  async hideSuggestion(): Promise<void> {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    this.suggestion = undefined;
    this.draw();
  }

  /** The user closed the editor's menu, behind which a next edit waits. */
  async leaveMenu(): Promise<void> {
    await vscode.commands.executeCommand("hideSuggestWidget");
    this.menu = undefined;
    this.draw();
  }

  dispose(): void {
    this.cancel();
    this.hide();
    this.listeners.forEach((listener) => void listener.dispose());
    this.marks.dispose();
  }

  /** What is shown for the text as it stands in the editor in front. */
  private get currentlyShown(): (Shown & { current: NextEdit }) | undefined {
    const shown = this.shown;
    if (!shown?.current || shown.editor !== vscode.window.activeTextEditor) return undefined;
    return shown.version === shown.editor.document.version ? (shown as Shown & { current: NextEdit }) : undefined;
  }

  private askSoon(): void {
    this.cancel();
    this.timer = setTimeout(() => void this.refresh(false), DEBOUNCE_MS);
  }

  private cancel(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.request?.cancel();
    this.request = undefined;
  }

  /** The server knows more than it answered. */
  private more(uri: string): void {
    const document = vscode.window.activeTextEditor?.document;
    if (!document || this.client?.code2ProtocolConverter.asUri(document.uri) !== uri) return;
    // A request that waits or runs gets it.
    if (this.timer === undefined && !this.request) void this.refresh(this.shown?.isAskedFor ?? false);
  }

  /** Asks for the next one of a chain, to which the key belongs for a moment. */
  private async goOn(isAskedFor: boolean): Promise<void> {
    this.isAwaited = true;
    this.setContext("redraft.nextEditShown", true);
    await Promise.race([this.refresh(isAskedFor), new Promise((done) => setTimeout(done, LONGEST_WAIT_MS))]);
    this.isAwaited = false;
    if (!this.shown?.drawnFor) this.setContext("redraft.nextEditShown", false);
  }

  /** Asks the server and shows what it proposes. True when there is something. */
  private async refresh(isAskedFor: boolean): Promise<boolean> {
    this.cancel();
    const client = this.client;
    const editor = vscode.window.activeTextEditor;
    if (client?.state !== State.Running || !editor || vscode.languages.match(DOCUMENTS, editor.document) === 0) {
      return false;
    }
    const { document } = editor;
    const { version } = document;
    const textDocument = client.code2ProtocolConverter.asTextDocumentIdentifier(document);
    const position = client.code2ProtocolConverter.asPosition(editor.selection.active);
    const request = new vscode.CancellationTokenSource();
    this.request = request;
    const asked = isAskedFor || this.isAwaited || this.shown !== undefined;
    const answer = await client
      .sendRequest(nextEditRequest, { textDocument, position, asked }, request.token)
      .catch(() => null);
    if (this.request !== request) return false;
    this.request = undefined;
    if (vscode.window.activeTextEditor !== editor || document.version !== version) return false;
    const edits = (answer?.edits ?? []).filter((one) => !this.decided.has(nameOf(one)));
    const isOutdated = edits.some(
      ({ textDocument: { uri, version: of } }) => uri === textDocument.uri && of !== version,
    );
    if (edits.length === 0 || isOutdated || this.isReviewed(document) || this.hasChosen(document)) {
      this.hide();
      return false;
    }
    if (this.shown?.editor !== editor) this.hide();
    const isFirst = answer?.first === true || this.isAwaited;
    if (isFirst) this.closeMenu(document, version);
    // What is drawn already stays as it is.
    const { oldText, hasText, isGhost, drawnFor } = this.shown ?? NOTHING_DRAWN;
    const drawn = { oldText, hasText, isGhost, ...(drawnFor === undefined ? {} : { drawnFor }) };
    this.shown = { editor, uri: textDocument.uri, version, edits, isAskedFor, isFirst, ...drawn };
    this.draw();
    return true;
  }

  /**
   * The name is whole, and a menu that opened by itself would change it: the key is the next edit's. What the menu waits for
   * may come later than our answer.
   */
  private closeMenu(document: vscode.TextDocument, version: number): void {
    for (const delay of MENU_OPENS_MS) {
      setTimeout(() => {
        if (this.shown?.editor.document !== document || document.version !== version) return;
        if (this.hasChosen(document)) return;
        void vscode.commands.executeCommand("hideSuggestWidget");
      }, delay);
    }
  }

  /** The user moves through the editor's menu. */
  choosesInMenu(): void {
    const document = vscode.window.activeTextEditor?.document;
    if (!document) return;
    this.chosenIn = { document, version: document.version };
    this.hide();
  }

  private hasChosen(document: vscode.TextDocument): boolean {
    return this.chosenIn?.document === document && this.chosenIn.version === document.version;
  }

  /** Draws the current one anew where the text, the cursor or what is in view changed. */
  private draw(): void {
    const shown = this.shown;
    if (!shown) return;
    const { editor } = shown;
    const cursor = editor.selection.active;
    const one = nearest(shown.edits, shown.uri, cursor.line);
    if (!one) {
      this.hide();
      return;
    }
    if (one !== shown.current) {
      if (shown.current) shown.isAskedFor = false;
      shown.current = one;
    }
    const isBehindMenu = !shown.isFirst && !shown.isAskedFor && isAt(this.menu, editor);
    this.setContext("redraft.nextEditWaits", isBehindMenu);
    if (isBehindMenu || isAt(this.suggestion, editor)) {
      this.hideBehind(shown);
      return;
    }
    const isFull = shown.isAskedFor || !isQuiet(editor.document);
    const views = editor.visibleRanges.map(({ start, end }) => [start.line, end.line]);
    const drawnFor = JSON.stringify([nameOf(one), one.range, shown.version, cursor, views, isFull]);
    if (drawnFor === shown.drawnFor) return;
    shown.drawnFor = drawnFor;
    this.drawAt(shown, one, cursor, isFull);
    this.setContext("redraft.nextEditShown", true);
    this.setContext("redraft.nextEditIsGhost", shown.isGhost);
    this.announce(one);
  }

  private drawAt(shown: Shown, one: NextEdit, cursor: vscode.Position, isFull: boolean): void {
    const { editor } = shown;
    const uri = this.uriOf(shown, one);
    const isHere = one.textDocument.uri === shown.uri;
    const isInView =
      isHere &&
      editor.visibleRanges.some(
        ({ start, end }) => one.range.start.line <= end.line && lastLine(one.range) >= start.line,
      );
    shown.isGhost = false;
    shown.hasText = false;
    if (!isFull) {
      this.marks.drawSign(editor, isHere ? one.range.start.line : cursor.line, one.title);
    } else if (!isInView) {
      this.marks.drawHint(editor, one, uri, cursor.line);
    } else if (one.text === null) {
      this.marks.drawHint(editor, one, uri, one.range.start.line);
    } else {
      shown.oldText = editor.document.getText(asRange(one.range));
      shown.hasText = true;
      shown.isGhost = this.ghostOf(shown, one, cursor) !== undefined;
      if (shown.isGhost) this.showGhost(editor, one);
      else this.marks.drawText(editor, one);
    }
  }

  /** By the editor itself, which asks for it. */
  private showGhost(editor: vscode.TextEditor, one: NextEdit): void {
    this.marks.drawSign(editor, one.range.start.line, one.title);
    this.triggered = Date.now();
    void vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  }

  /** The editor's own ghost text, where something is inserted at the cursor or behind it. */
  private ghostOf(shown: Shown, one: NextEdit, cursor: vscode.Position): vscode.InlineCompletionItem | undefined {
    const { document } = shown.editor;
    const insertion = insertionOf(one, shown.oldText);
    if (insertion?.at.line !== cursor.line || insertion.at.character < cursor.character) return undefined;
    if (!vscode.workspace.getConfiguration("editor", document).get<boolean>("inlineSuggest.enabled", true)) {
      return undefined;
    }
    // The editor wants the place to begin at the cursor.
    const range = new vscode.Range(cursor, new vscode.Position(insertion.at.line, insertion.at.character));
    return new vscode.InlineCompletionItem(document.getText(range) + insertion.text, range, {
      title: "Accept next edit",
      command: "redraft.nextEditTaken",
      arguments: [one],
    });
  }

  /** The next edit as ghost text, for the text as it stands. */
  private ghostAt(document: vscode.TextDocument, position: vscode.Position): vscode.InlineCompletionItem | undefined {
    const shown = this.currentlyShown;
    if (shown?.editor.document !== document || !shown.hasText) return undefined;
    return this.ghostOf(shown, shown.current, position);
  }

  private hideBehind(shown: Shown): void {
    this.marks.erase(shown.editor);
    delete shown.drawnFor;
    shown.isGhost = false;
    shown.hasText = false;
    this.setContext("redraft.nextEditShown", false);
    this.setContext("redraft.nextEditIsGhost", false);
  }

  private hide(): void {
    if (this.shown) this.marks.erase(this.shown.editor);
    this.shown = undefined;
    for (const name of ["Shown", "IsGhost", "Waits"]) this.setContext(`redraft.nextEdit${name}`, false);
  }

  private setContext(name: string, on: boolean): void {
    if ((this.contexts.get(name) ?? false) === on) return;
    this.contexts.set(name, on);
    void vscode.commands.executeCommand("setContext", name, on);
  }

  private announce(one: NextEdit): void {
    if (this.announced.has(nameOf(one))) return;
    this.announced.add(nameOf(one));
    void this.client?.sendNotification(inlineEditShown, { item: { command: { arguments: [{ number: one.number }] } } });
  }

  private tell(command: string, { number }: NextEdit): void {
    const told = { command, arguments: [{ number }] };
    void this.client?.sendRequest("workspace/executeCommand", told).catch(() => undefined);
  }

  private async jump(shown: Shown, one: NextEdit): Promise<void> {
    const { line, character } = one.range.start;
    const place = new vscode.Selection(line, character, line, character);
    if (one.text === null) {
      this.tell("redraft.nextEdit.accepted", one);
      this.forget(shown, one);
    }
    if (one.textDocument.uri === shown.uri) {
      shown.editor.selection = place;
      shown.editor.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      shown.isAskedFor = one.text !== null;
      this.draw();
      return;
    }
    const uri = this.uriOf(shown, one);
    this.wantedIn = uri.toString();
    this.hide();
    const editor = await vscode.window.showTextDocument(uri, { selection: place, preserveFocus: false });
    editor.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  private async accept(shown: Shown, one: NextEdit, text: string): Promise<void> {
    const { editor } = shown;
    const range = asRange(one.range);
    // The server knows it by its number until the text is changed.
    this.tell("redraft.nextEdit.accepted", one);
    this.forget(shown, one);
    const options = { undoStopBefore: true, undoStopAfter: true };
    this.accepting = Promise.resolve(editor.edit((builder) => builder.replace(range, text), options));
    const isDone = await this.accepting;
    this.accepting = undefined;
    if (isDone) {
      const { line, character } = placeBehind(one.range.start, text);
      const end = editor.document.validatePosition(new vscode.Position(line, character));
      editor.selection = new vscode.Selection(end, end);
    }
    await this.goOn(false);
  }

  private forget(shown: Shown, one: NextEdit): void {
    this.decided.add(nameOf(one));
    shown.edits = shown.edits.filter((other) => other !== one);
  }

  private uriOf(shown: Shown, one: NextEdit): vscode.Uri {
    if (one.textDocument.uri === shown.uri) return shown.editor.document.uri;
    return this.client?.protocol2CodeConverter.asUri(one.textDocument.uri) ?? vscode.Uri.parse(one.textDocument.uri);
  }

  private changed(event: vscode.TextDocumentChangeEvent): void {
    if (event.contentChanges.length === 0) return;
    const shown = this.shown;
    if (shown?.editor.document === event.document) {
      if (this.accepting || this.isTakenAsGhost(shown, event)) this.followAccepted(shown, event);
      else if (!this.followTyping(shown, event)) this.hide();
    }
    if (event.document === vscode.window.activeTextEditor?.document) this.askSoon();
  }

  /** Whether the editor itself took the one that it shows. */
  private isTakenAsGhost(shown: Shown, { document, contentChanges }: vscode.TextDocumentChangeEvent): boolean {
    const one = shown.current;
    const [change] = contentChanges;
    if (!change || contentChanges.length > 1 || !shown.isGhost || typeof one?.text !== "string") return false;
    const { start } = one.range;
    const now = document.getText(asRange({ start, end: placeBehind(start, one.text) }));
    const grown = change.text.length - change.rangeLength;
    if (grown !== one.text.length - shown.oldText.length || !sameText(now, one.text)) return false;
    this.forget(shown, one);
    return true;
  }

  /** The next ones are there at once. */
  private followAccepted(shown: Shown, { contentChanges }: vscode.TextDocumentChangeEvent): void {
    const here = shown.edits.filter((one) => one.textDocument.uri === shown.uri);
    const others = shown.edits.filter((one) => one.textDocument.uri !== shown.uri);
    shown.edits = [...shiftHunks(here, contentChanges), ...others];
    shown.version = shown.editor.document.version;
    this.draw();
  }

  /** What is shown stays while the user types it. */
  private followTyping(shown: Shown, { contentChanges, reason }: vscode.TextDocumentChangeEvent): boolean {
    const [change] = contentChanges;
    if (!change || contentChanges.length > 1 || reason !== undefined || !shown.current || !shown.hasText) return false;
    const left = afterTyping(shown.current, shown.oldText, change);
    if (!left) return false;
    shown.edits = [left];
    shown.current = left;
    shown.version = shown.editor.document.version;
    this.draw();
    return true;
  }

  private moved(editor: vscode.TextEditor): void {
    if (this.suggestion && !isAt(this.suggestion, editor)) this.suggestion = undefined;
    if (this.menu && !isAt(this.menu, editor)) this.menu = undefined;
    this.scrolled(editor);
  }

  private scrolled(editor: vscode.TextEditor): void {
    if (editor === this.shown?.editor && this.shown.version === editor.document.version) this.draw();
  }

  /** What was proposed for a document is shown in it. */
  private entered(editor: vscode.TextEditor | undefined): void {
    this.cancel();
    this.hide();
    if (!editor) return;
    const isWanted = this.wantedIn === editor.document.uri.toString();
    this.wantedIn = undefined;
    if (isWanted) void this.goOn(true);
    else this.askSoon();
  }
}

/** Whether only signs are shown until the key is pressed. */
function isQuiet(document: vscode.TextDocument): boolean {
  return vscode.workspace.getConfiguration("redraft", document).get<string>("nextEdits.display") === "sign";
}

/** Whether an editor's cursor is at a place, in the same text. */
function isAt(place: Place | undefined, { document, selection }: vscode.TextEditor): boolean {
  if (place?.document !== document || place.version !== document.version) return false;
  return place.position.isEqual(selection.active);
}

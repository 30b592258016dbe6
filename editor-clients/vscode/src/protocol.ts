/** Messages of Redraft's server beyond the Language Server Protocol. */

import { NotificationType, RequestType } from "vscode-languageclient/node";
import type {
  Position,
  Range,
  TextDocumentIdentifier,
  VersionedTextDocumentIdentifier,
} from "vscode-languageclient/node";

import type { NextEdit } from "./nextEdit";

export interface EditParams {
  textDocument: VersionedTextDocumentIdentifier;
  range: Range;
  instruction: string;
  /** Comes back in every `EditProgress` of this request. */
  streamToken: string;
}

export interface ServerHunk {
  range: Range;
  oldText: string;
  newText: string;
  /** What the user should look at: that the change is more than was asked for; empty for nothing. */
  note?: string;
}

export interface EditStatistics {
  tokens: number;
  forwards: number;
  seconds: number;
}

export interface EditResult {
  hunks: ServerHunk[];
  version: number;
  /** What the user should know before accepting; empty for nothing. */
  warning?: string;
  statistics: EditStatistics;
}

export interface EditProgress {
  token: string;
  /** Everything generated so far. */
  text: string;
  tokens: number;
}

export type State = "ready" | "loading" | "indexing" | "paused" | "error" | "inactive";

export interface Status {
  state: State;
  message?: string;
  remedy?: string;
  model?: string;
  /** The model of edits; the same where there is one for both. */
  editModel?: string;
  /** Where a setting of this editor goes before a choice of `redraft models use`. */
  modelNotes?: string[];
  workspace?: string;
  index?: { files?: number; tokens?: number; done?: number; total?: number };
  /** Tokens of the longest prompt of a suggestion. */
  promptTokens?: number | null;
  tokensPerForward?: number | null;
  reason?: string;
  /** The server that the model is at, and what answers: `server`, `local` or `nothing`. */
  server?: { url: string; answers: string; drafted: boolean; reason: string } | null;
  /** Open documents that seem to hold secrets. */
  heldBack?: { uri: string; reason: string }[];
}

export const editRequest = new RequestType<EditParams, EditResult, void>("redraft/edit");
export const statusRequest = new RequestType<{ textDocument?: TextDocumentIdentifier }, Status, void>("redraft/status");
/** A model, on this machine or to be fetched, as `redraft models --json` describes it. */
export interface ModelCard {
  name: string;
  /** All its places, none where it is to be fetched. */
  paths: string[];
  source: string;
  family: string;
  bits: number;
  licence: string;
  /** What the licence does not allow, empty for nothing. */
  terms: string;
  purpose: string;
  does: string[];
  fits: boolean;
  tokens_per_s: number | null;
  problem: string;
}

/** A model that `redraft models get` can fetch. */
export interface OfferedModel extends ModelCard {
  bytes: number;
  /** Its name once it is here. */
  file: string;
  /** What comes over the network, 0 where only the hub knows. */
  fetched_bytes: number;
}

/** What suits this machine best: a path is empty for one to be fetched, a name where nothing suits. */
export interface Recommendation {
  name: string;
  path: string;
  reason: string;
  fetch: boolean;
}

export interface Models {
  models: ModelCard[];
  offered: OfferedModel[];
  recommended: Recommendation;
  /** Paths of what was chosen for all editors, empty for none. */
  chosen: { completion: string };
}

export const modelsRequest = new RequestType<object, Models, void>("redraft/models");
/** The user pressed *Choose Model* in a message of the server. */
export const chooseModelNotification = new NotificationType<object>("redraft/chooseModel");
/** What follows from the last change; null when a newer request came. */
export const nextEditRequest = new RequestType<
  // `asked`: a key of the user asks for it.
  { textDocument: TextDocumentIdentifier; position: Position; asked: boolean },
  // `first`: they come before a list of completions that opened by itself.
  { edits: NextEdit[]; first?: boolean } | null,
  void
>("redraft/nextEdit");
/** More next edits are known of a document than the last answer had. */
export const nextEditsChanged = new NotificationType<{ uri: string }>("redraft/nextEditsChanged");
/** The user sees a next edit. */
export const inlineEditShown = new NotificationType<{ item: { command: { arguments: [{ number: number }] } } }>(
  "textDocument/didShowInlineEdit",
);
export const prepareEdit = new NotificationType<{ textDocument: TextDocumentIdentifier; range: Range }>(
  "redraft/prepareEdit",
);
export const editProgress = new NotificationType<EditProgress>("redraft/editProgress");
export const statusChanged = new NotificationType<Status>("redraft/status");

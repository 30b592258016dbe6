/** The section `redraft` as the server wants it: without what only this extension reads. */

import * as vscode from "vscode";

const CLIENT_ONLY = new Set(["serverPath", "trace"]);

type Values = Record<string, unknown>;

export function serverPath(): string {
  return vscode.workspace.getConfiguration("redraft").get<string>("serverPath", "");
}

export function serverSettings(scope?: vscode.Uri): Values {
  const section = vscode.workspace.getConfiguration(undefined, scope ?? null).get<Values>("redraft", {});
  return withoutClientSettings(section);
}

export function withoutClientSettings(section: Values): Values {
  return Object.fromEntries(Object.entries(section).filter(([name]) => !CLIENT_ONLY.has(name)));
}

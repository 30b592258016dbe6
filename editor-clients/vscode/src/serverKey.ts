/** The key of the team's server: kept in VS Code's secret storage, one for each origin. */

import * as vscode from "vscode";

const VARIABLE = "REDRAFT_SERVER_KEY";

/** Scheme, host and port of `redraft.server.url`; undefined without a server. */
function serverOrigin(): string | undefined {
  const url = vscode.workspace.getConfiguration("redraft").get<string>("server.url", "");
  try {
    return url ? new URL(url).origin : undefined;
  } catch {
    return undefined;
  }
}

function entryOf(origin: string): string {
  return `redraft.server.key ${origin}`;
}

/** What the server's process finds in its environment; a key is given to no other origin than its own. */
export async function keyEnvironment(secrets: vscode.SecretStorage): Promise<Record<string, string>> {
  const origin = serverOrigin();
  const key = origin && (await secrets.get(entryOf(origin)));
  return key ? { [VARIABLE]: key } : {};
}

/** Asks for the key. An empty one is forgotten. True when there is another one now. */
export async function setServerKey(secrets: vscode.SecretStorage): Promise<boolean> {
  const origin = serverOrigin();
  if (!origin) {
    const settings = "Open Settings";
    const answer = await vscode.window.showInformationMessage("Set redraft.server.url first.", settings);
    if (answer) await vscode.commands.executeCommand("workbench.action.openSettings", "redraft.server.url");
    return false;
  }
  const key = await vscode.window.showInputBox({
    title: `Redraft: the key of ${origin}`,
    prompt: "It is kept in VS Code's secret storage and sent to this server alone. Empty: forget it.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) return false;
  if (key.trim()) await secrets.store(entryOf(origin), key.trim());
  else await secrets.delete(entryOf(origin));
  return true;
}

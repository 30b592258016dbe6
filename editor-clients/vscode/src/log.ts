/** The server's log, as a document. */

import { execFile } from "node:child_process";
import * as path from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";

const run = promisify(execFile);

/** Opens the daemon's log; where no daemon runs, what this extension has noted, which says why. */
export async function showLog(command: string | undefined, notes: vscode.LogOutputChannel): Promise<void> {
  const folder = command === undefined ? undefined : await logFolder(command).catch(() => undefined);
  if (folder === undefined) {
    notes.show();
    return;
  }
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path.join(folder, "daemon.log")));
  const end = document.lineAt(document.lineCount - 1).range.end;
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(end, end) });
}

async function logFolder(command: string): Promise<string | undefined> {
  const { stdout } = await run(command, ["status", "--json"], { timeout: 10_000 });
  return (JSON.parse(stdout) as { log?: string }).log;
}

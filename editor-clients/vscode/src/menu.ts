/** What a click on the status bar item offers. */

import * as vscode from "vscode";

import type { StatusItem } from "./status";

interface Entry extends vscode.QuickPickItem {
  command: string;
  values?: unknown[];
}

export async function showMenu({ state, summary, heldBack }: StatusItem): Promise<void> {
  const pause: Entry =
    state === "paused"
      ? { label: "$(debug-start) Resume here", command: "redraft.resumeHere" }
      : { label: "$(debug-pause) Pause here", command: "redraft.pauseHere" };
  const entries: Entry[] = [
    { label: "$(edit) Edit with instruction…", command: "redraft.editWithInstruction" },
    pause,
    ...(heldBack
      ? [{ label: "$(unlock) Allow this file, which is held back", command: "redraft.allowThisFile" }]
      : []),
    { label: "$(sync) Reindex the workspace", command: "redraft.reindexWorkspace" },
    { label: "$(package) Choose model…", command: "redraft.chooseModel" },
    { label: "$(key) Set server key…", command: "redraft.setServerKey" },
    { label: "$(output) Show log", command: "redraft.showLog" },
    { label: "$(pulse) Run doctor", command: "redraft.runDoctor" },
    { label: "$(debug-restart) Restart server", command: "redraft.restartServer" },
    { label: "$(cloud-download) Install server into a private environment", command: "redraft.installServer" },
    { label: "$(gear) Settings", command: "workbench.action.openSettings", values: ["redraft."] },
  ];
  const chosen = await vscode.window.showQuickPick(entries, { title: `Redraft: ${summary}` });
  if (chosen) await vscode.commands.executeCommand(chosen.command, ...(chosen.values ?? []));
}

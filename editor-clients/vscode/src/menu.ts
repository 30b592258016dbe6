/** What a click on the status bar item offers. */

import * as vscode from "vscode";

import type { StatusItem } from "./status";

interface Entry extends vscode.QuickPickItem {
  command: string;
  values?: unknown[];
}

/** For how long nothing is to be suggested. */
export async function chooseMinutes(): Promise<number | undefined> {
  const choices = [5, 10, 30, 60].map((minutes) => ({ label: `${minutes} minutes`, minutes }));
  const chosen = await vscode.window.showQuickPick(choices, { title: "Redraft: nothing is suggested for" });
  return chosen?.minutes;
}

export async function showMenu({ state, summary, heldBack }: StatusItem): Promise<void> {
  const pause: Entry =
    state === "paused"
      ? { label: "$(debug-start) Resume here", command: "redraft.resumeHere" }
      : { label: "$(debug-pause) Pause here", command: "redraft.pauseHere" };
  const snooze: Entry = { label: "$(bell-slash) Snooze…", command: "redraft.snoozeHere" };
  const entries: Entry[] = [
    { label: "$(edit) Edit with instruction…", command: "redraft.editWithInstruction" },
    pause,
    ...(state === "paused" ? [] : [snooze]),
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

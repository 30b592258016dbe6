/** Choosing the model: the embedded one, a folder on this machine, or what the settings name. */

import * as vscode from "vscode";

interface Choice extends vscode.QuickPickItem {
  run: () => Thenable<unknown>;
}

export async function chooseModel(): Promise<void> {
  const choices: Choice[] = [
    { label: "$(package) The embedded model", description: "needs no download", run: () => setPath("") },
    { label: "$(folder) A folder on this machine…", run: chooseFolder },
    {
      label: "$(gear) By id or path, in the settings",
      run: () => vscode.commands.executeCommand("workbench.action.openSettings", "redraft.model.path"),
    },
  ];
  const chosen = await vscode.window.showQuickPick(choices, { title: "Redraft: which model shall run?" });
  await chosen?.run();
}

async function chooseFolder(): Promise<void> {
  const folders = await vscode.window.showOpenDialog({
    canSelectFiles: false,
    canSelectFolders: true,
    openLabel: "Use This Model",
    title: "The folder with config.json and the weights",
  });
  if (folders?.[0]) await setPath(folders[0].fsPath);
}

/** Where the path is set now it is set anew, so that the choice counts. */
async function setPath(path: string): Promise<void> {
  const settings = vscode.workspace.getConfiguration("redraft");
  const known = settings.inspect<string>("model.path");
  const target =
    known?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await settings.update("model.path", path, target);
}

/** Choosing the model: one that lies on this machine, the embedded one, or what the settings name. */

import * as vscode from "vscode";
import { type BaseLanguageClient, State } from "vscode-languageclient";

import { type KnownModel, modelsRequest } from "./protocol";

interface Choice extends vscode.QuickPickItem {
  run: () => Thenable<unknown>;
}

export async function chooseModel(client?: BaseLanguageClient): Promise<void> {
  const others: Choice[] = [
    { label: "$(package) The embedded model", description: "needs no download", run: () => setPath("") },
    { label: "$(file) A GGUF file on this machine…", run: chooseFile },
    { label: "$(folder) A folder on this machine…", run: chooseFolder },
    {
      label: "$(gear) By id or path, in the settings",
      run: () => vscode.commands.executeCommand("workbench.action.openSettings", "redraft.model.path"),
    },
  ];
  const choices = found(client).then((models) => [...models.map(choiceOf), ...others]);
  const chosen = await vscode.window.showQuickPick(choices, { title: "Redraft: which model shall run?" });
  await chosen?.run();
}

/** What other programs keep on this machine and can be opened; nothing where no server runs. */
async function found(client?: BaseLanguageClient): Promise<KnownModel[]> {
  if (client?.state !== State.Running) return [];
  try {
    const { models } = await client.sendRequest(modelsRequest, {});
    return models.filter((model) => !model.problem && model.paths.length > 0);
  } catch {
    return [];
  }
}

function choiceOf(model: KnownModel): Choice {
  const speed = model.tokens_per_s ? [`${Math.round(model.tokens_per_s).toString()} tokens/s`] : [];
  const room = model.fits ? [] : ["too large for the memory that is free"];
  const parts = [model.family, `${model.bits.toString()} bits`, ...speed, model.licence, ...room];
  return {
    label: `$(database) ${model.name}`,
    description: parts.filter((part) => part).join(", "),
    detail: model.paths[0] ?? "",
    run: () => setPath(model.paths[0] ?? ""),
  };
}

async function chooseFile(): Promise<void> {
  const files = await vscode.window.showOpenDialog({
    openLabel: "Use This Model",
    title: "A model as llama.cpp reads it",
    filters: { "GGUF files": ["gguf"] },
  });
  if (files?.[0]) await setPath(files[0].fsPath);
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

/** Choosing the model: one that lies on this machine, one to be fetched, or what the settings name. */

import * as vscode from "vscode";
import { type BaseLanguageClient, State } from "vscode-languageclient";

import { type ModelCard, type Models, modelsRequest, type OfferedModel } from "./protocol";
import { runVisibly } from "./terminal";

interface Choice extends vscode.QuickPickItem {
  run: () => Thenable<unknown>;
}

/** `command`: the server's, by which a model is fetched. */
export async function chooseModel(client?: BaseLanguageClient, command?: string): Promise<void> {
  const others: Choice[] = [
    { label: "$(file) A GGUF file on this machine…", run: chooseFile },
    { label: "$(folder) A folder on this machine…", run: chooseFolder },
    {
      label: "$(gear) By id or path, in the settings",
      run: () => vscode.commands.executeCommand("workbench.action.openSettings", "redraft.model.path"),
    },
  ];
  const choices = found(client).then((listed) => [...choicesOf(listed, client, command), ...others]);
  const chosen = await vscode.window.showQuickPick(choices, { title: "Redraft: which model shall run?" });
  await chosen?.run();
}

/** The server's list; nothing where no server runs. */
async function found(client?: BaseLanguageClient): Promise<Models | undefined> {
  if (client?.state !== State.Running) return undefined;
  try {
    return await client.sendRequest(modelsRequest, {});
  } catch {
    return undefined;
  }
}

/** What is here and can be opened, what can be fetched: the recommended one first. */
function choicesOf(listed?: Models, client?: BaseLanguageClient, command?: string): Choice[] {
  if (!listed) return [];
  const usable = listed.models.filter((model) => !model.problem && model.paths.length > 0);
  const best = listed.recommended;
  const choices = [
    ...usable.map((model) => ({ name: model.name, choice: choiceOf(model) })),
    ...(command ? listed.offered.map((model) => ({ name: model.name, choice: offerOf(model, client, command) })) : []),
  ];
  const first = choices.filter((one) => one.name === best.name);
  for (const { choice } of first) {
    choice.description = `recommended, ${choice.description ?? ""}`;
    choice.detail = [choice.detail, best.reason].filter((part) => part).join(": ");
  }
  return [...first, ...choices.filter((one) => one.name !== best.name)].map((one) => one.choice);
}

function choiceOf(model: ModelCard): Choice {
  return {
    label: `$(database) ${model.name}`,
    description: facts(model),
    detail: model.paths[0] ?? "",
    run: () => setPath(model.paths[0] ?? ""),
  };
}

function offerOf(model: OfferedModel, client: BaseLanguageClient | undefined, command: string): Choice {
  const bytes = model.fetched_bytes;
  const size = bytes ? `${Math.round(bytes / 1e6).toString()} MB` : "the hub knows the size";
  const licence = model.terms ? `${model.licence}: ${model.terms}` : model.licence;
  return {
    label: `$(cloud-download) ${model.name}`,
    description: bytes ? `fetch ${size}, ${facts(model)}` : `fetch, ${facts(model)}`,
    detail: model.purpose ? `for ${model.purpose}` : "",
    run: () => fetchModel(model, `${size}, licence ${licence}`, client, command),
  };
}

function facts(model: ModelCard): string {
  const speed = model.tokens_per_s ? [`${Math.round(model.tokens_per_s).toString()} tokens/s`] : [];
  const room = model.fits ? [] : ["too large for the memory that is free"];
  const bits = model.bits ? [`${model.bits.toString()} bits`] : [];
  const parts = [model.family, ...bits, ...speed, model.licence, ...room];
  return parts.filter((part) => part).join(", ");
}

/** Asks, fetches where the user sees how far it is, and chooses what came. */
async function fetchModel(
  model: OfferedModel,
  about: string,
  client: BaseLanguageClient | undefined,
  command: string,
): Promise<void> {
  const question = `Fetch ${model.name} (${about})?`;
  if ((await vscode.window.showInformationMessage(question, { modal: true }, "Fetch")) !== "Fetch") return;
  if ((await runVisibly("fetch a model", command, ["models", "get", model.name])) !== 0) return;
  const places = (await found(client))?.models.flatMap((one) => one.paths) ?? [];
  const place = places.find((path) => path.split(/[\\/]/).pop() === model.file);
  const isForNextEdits = model.does.includes("next-edit") && !model.does.includes("fim");
  if (place) await setPath(place, isForNextEdits ? "nextEdits.model" : "model.path");
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
async function setPath(path: string, name = "model.path"): Promise<void> {
  const settings = vscode.workspace.getConfiguration("redraft");
  const known = settings.inspect<string>(name);
  const target =
    known?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await settings.update(name, path, target);
}

/** A Python environment of the extension's own that holds the server. Made only when the user says so. */

import { rm } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";

import { onPath } from "./server";
import { serverPackage } from "./settings";
import { runVisibly } from "./terminal";

const WINDOWS = process.platform === "win32";

function inEnvironment(storage: string, name: string): string {
  return path.join(storage, "server", WINDOWS ? "Scripts" : "bin", WINDOWS ? `${name}.exe` : name);
}

export function privateCommand(storage: string): string {
  return inEnvironment(storage, "redraft");
}

/** Asks, then installs in a terminal that shows every step. True when the server is there afterwards. */
export async function offerPrivateEnvironment(storage: string): Promise<boolean> {
  const install = "Install";
  const settings = "Choose a path";
  const answer = await vscode.window.showInformationMessage(
    "Redraft's server was not found. Install it into a private Python environment of this extension?",
    { detail: "This fetches the package and its dependencies by pip. Nothing else on this machine changes." },
    install,
    settings,
  );
  if (answer === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "redraft.serverPath");
  }
  return answer === install && (await makePrivateEnvironment(storage));
}

export async function makePrivateEnvironment(storage: string): Promise<boolean> {
  const python = (await onPath("python3")) ?? (await onPath("python"));
  if (!python) {
    void vscode.window.showErrorMessage("Redraft needs Python 3.10 or newer on PATH. Install it, then try again.");
    return false;
  }
  const folder = path.join(storage, "server");
  const steps: [string, string[]][] = [
    [python, ["-I", "-m", "venv", "--clear", folder]],
    [inEnvironment(storage, "python"), ["-I", "-m", "pip", "install", "--disable-pip-version-check", serverPackage()]],
  ];
  for (const [command, args] of steps) {
    const code = await runVisibly("install server", command, args);
    if (code !== 0) {
      await rm(folder, { recursive: true, force: true });
      void vscode.window.showErrorMessage("Redraft's server could not be installed; the terminal shows why.");
      return false;
    }
  }
  return true;
}

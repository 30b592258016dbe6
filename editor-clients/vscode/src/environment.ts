/** The server of the extension's own: the pinned version that it carries, in a Python environment made when the user says so. */

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import * as path from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";

import { onPath } from "./server";
import type { PinnedServer } from "./serverVersion";
import { runVisibly } from "./terminal";

const run = promisify(execFile);

/** Of the server and what it needs, as the release check measures it. */
const INSTALLED_SIZE = "600 MB";
const DECLINED = "redraft.declinedInstallation";

interface CarriedServer extends PinnedServer {
  /** What the default model is, its size and licence. */
  model: string;
}

export class PrivateEnvironment {
  /** The user said yes to the default model, too, where none is chosen. */
  wantsModel = false;
  private readonly packed: string;
  private readonly folder: string;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly onInstall: () => void,
  ) {
    this.packed = path.join(context.extensionUri.fsPath, "server");
    this.folder = path.join(context.globalStorageUri.fsPath, "server");
  }

  /** The server that this extension carries. */
  async pinned(): Promise<CarriedServer> {
    return JSON.parse(await readFile(path.join(this.packed, "server.json"), "utf8")) as CarriedServer;
  }

  /** The command of the environment; undefined where there is none. */
  async command(): Promise<string | undefined> {
    try {
      const chosen = JSON.parse(await readFile(path.join(this.folder, "current.json"), "utf8")) as { command?: string };
      return chosen.command;
    } catch {
      return undefined;
    }
  }

  /** Asks once for the server and the default model that its first start would ask for. As `offer`. */
  async offerAll(question: string): Promise<boolean> {
    const { model } = await this.pinned();
    return this.offer(question, ["Install Both", "Server Alone"], ` and, where none is chosen, the default model, ${model},`);
  }

  /** Asks, then installs. True when the server is there afterwards. Who declined is not asked again for this version. */
  async offer(question: string, installs = ["Install"], model = ""): Promise<boolean> {
    const { version } = await this.pinned();
    if (this.context.globalState.get(DECLINED) === version) return false;
    const needed = `what it needs (${INSTALLED_SIZE} once installed)${model} ${model ? "are" : "is"} fetched from the Python Package Index`;
    const detail = `Redraft ${version} comes with this extension; ${needed}.`;
    const buttons = [...installs, "Other Ways…", "Not Now"];
    const answer = await vscode.window.showInformationMessage(`${question} ${detail}`, ...buttons);
    if (answer !== undefined && installs.includes(answer)) {
      this.wantsModel = answer === "Install Both";
      return this.install();
    }
    if (answer === "Other Ways…") return this.offerOtherWays();
    if (answer === "Not Now") await this.context.globalState.update(DECLINED, version);
    return false;
  }

  private async offerOtherWays(): Promise<boolean> {
    const fromFile = { label: "Install from a file…", detail: "What `install.py download` wrote on a machine with a network" };
    const byPath = { label: "Choose the path of a server…", detail: "One that is installed already" };
    const chosen = await vscode.window.showQuickPick([fromFile, byPath], { title: "Redraft's server" });
    if (chosen === fromFile) return this.installFromFile();
    if (chosen === byPath) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "redraft.serverPath");
    }
    return false;
  }

  /** Without a network: from what `install.py download` fetched on another machine. */
  async installFromFile(): Promise<boolean> {
    const files = await vscode.window.showOpenDialog({
      openLabel: "Install from This File",
      title: "What `install.py download` wrote on a machine with a network",
      filters: { "Zip files": ["zip"] },
    });
    return files?.[0] ? this.install(files[0].fsPath) : false;
  }

  /** Installs in a terminal that shows every step. True when the server is there afterwards. */
  async install(file?: string): Promise<boolean> {
    await vscode.workspace.fs.createDirectory(vscode.Uri.file(this.folder));
    const python = await this.python();
    if (!python) {
      void vscode.window.showErrorMessage("Redraft needs Python 3.10 or newer, or uv, on PATH. Install one, then try again.");
      return false;
    }
    const [command, ...before] = python;
    const from = file === undefined ? [] : ["--from", file];
    const script = path.join(this.packed, "install.py");
    const args = [...before, script, "install", "--folder", this.folder, ...from];
    const progress = { location: vscode.ProgressLocation.Notification, title: "Redraft: installing the server…" };
    this.onInstall();
    // What lies in the folder that is open must not lead the installation: it runs in a folder of the extension's.
    const code = await vscode.window.withProgress(progress, () =>
      runVisibly("install server", command, args, this.folder),
    );
    if (code !== 0) {
      void vscode.window.showErrorMessage("Redraft's server could not be installed; the terminal shows why.");
    }
    return code === 0;
  }

  /** What runs the installer: a Python, else uv, which finds one. */
  private async python(): Promise<[string, ...string[]] | undefined> {
    for (const name of ["python3", "python"]) {
      const python = await onPath(name);
      const check = ["-I", "-c", "import sys; sys.exit(sys.version_info < (3, 10))"];
      if (python && (await run(python, check, { cwd: this.folder }).then(() => true, () => false))) return [python, "-I"];
    }
    const uv = await onPath("uv");
    return uv ? [uv, "run", "--no-project", "--python", ">=3.11", "python", "-I"] : undefined;
  }
}

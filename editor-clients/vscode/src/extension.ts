/** Redraft in VS Code: a thin client. What to suggest, when and why is the server's to decide. */

import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";
import type { LanguageClient } from "vscode-languageclient/node";

import { BackOff } from "./backoff";
import { makeClient, sendSettings } from "./client";
import type { EditTarget } from "./edits";
import { Edits } from "./edits";
import { PrivateEnvironment } from "./environment";
import { InstructionBox } from "./instruction";
import { showLog } from "./log";
import { chooseMinutes, showMenu } from "./menu";
import { chooseModel } from "./model";
import type { NextEdit } from "./nextEdit";
import { NextEdits } from "./nextEdits";
import { Previews } from "./preview";
import { chooseModelNotification } from "./protocol";
import type { Status } from "./protocol";
import { findServer, ServerMissing } from "./server";
import { keyEnvironment, setServerKey } from "./serverKey";
import { fitOf } from "./serverVersion";
import { serverPath } from "./settings";
import { StatusItem } from "./status";
import { runVisibly } from "./terminal";

class Extension implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private command: string | undefined;
  private attachments: vscode.Disposable[] = [];
  private retrying = false;
  private disposed = false;
  private readonly backOff = new BackOff();
  private readonly output = vscode.window.createOutputChannel("Redraft", { log: true });
  private readonly status = new StatusItem();
  private readonly previews = new Previews();
  private readonly edits: Edits;
  private readonly nextEdits: NextEdits;
  private readonly environment: PrivateEnvironment;
  private readonly secrets: vscode.SecretStorage;

  constructor(context: vscode.ExtensionContext) {
    this.environment = new PrivateEnvironment(context, () => {
      if (!this.client) this.status.show({ state: "loading", message: "installing the server" });
    });
    this.secrets = context.secrets;
    this.edits = new Edits(() => this.client, new InstructionBox(context.globalState), this.previews);
    this.nextEdits = new NextEdits(context.extensionUri, (document) => this.edits.isReviewed(document));
  }

  commands(): Record<string, (given: never) => unknown> {
    return {
      "redraft.editWithInstruction": (given?: EditTarget | vscode.Uri) => this.edits.start(given),
      "redraft.acceptEdit": () => this.edits.acceptAll(),
      "redraft.discardEdit": () => this.edits.discardAll(),
      "redraft.acceptHunk": () => this.edits.acceptHunk(),
      "redraft.discardHunk": () => this.edits.discardHunk(),
      "redraft.chooseHunks": () => this.edits.chooseHunks(),
      "redraft.showNextEdit": () => this.nextEdits.ask(),
      "redraft.takeNextEdit": () => this.nextEdits.take(),
      "redraft.rejectNextEdit": () => this.nextEdits.reject(),
      "redraft.hideSuggestion": () => this.nextEdits.hideSuggestion(),
      "redraft.chooseInMenu": () => this.nextEdits.choosesInMenu(),
      "redraft.leaveMenu": () => this.nextEdits.leaveMenu(),
      "redraft.nextEditTaken": (one: NextEdit) => this.nextEdits.taken(one),
      "redraft.menu": () => showMenu(this.status),
      "redraft.showStatus": () => this.showStatus(),
      "redraft.pauseHere": () => this.ask("redraft.pause"),
      "redraft.resumeHere": () => this.ask("redraft.resume"),
      "redraft.snoozeHere": () => this.snooze(),
      "redraft.reindexWorkspace": () => this.ask("redraft.reindex"),
      "redraft.allowThisFile": () => this.ask("redraft.allowFile"),
      "redraft.holdBackThisFile": () => this.ask("redraft.holdBackFile"),
      "redraft.chooseModel": () => chooseModel(this.client, this.command),
      "redraft.setServerKey": () => this.setServerKey(),
      "redraft.restartServer": () => this.restart(),
      "redraft.showLog": () => showLog(this.command, this.output),
      "redraft.runDoctor": () => this.runDoctor(),
      "redraft.installServer": () => this.install(() => this.environment.install()),
      "redraft.installServerFromFile": () => this.install(() => this.environment.installFromFile()),
    };
  }

  /** Finds and starts the server; what is missing is told once, with a way out. */
  async start(): Promise<void> {
    try {
      this.command = await findServer(serverPath(), await this.environment.command());
      if (this.command) {
        await this.connect(this.command);
        return;
      }
      // Red is for what went wrong; nothing did.
      const missing: Status = {
        state: "inactive",
        message: "no server found",
        remedy: "click to install one or set its path",
      };
      this.status.show(missing);
      const question = "Redraft's server was not found. Install it into a private Python environment of this extension?";
      if (await this.environment.offerAll(question)) await this.start();
      else this.status.show(missing);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.output.error(message);
      this.status.show({ state: "error", message });
      if (error instanceof ServerMissing) {
        void vscode.window.showErrorMessage(message, "Show log").then((answer) => answer && this.output.show());
      } else {
        await this.retry(message);
      }
    }
  }

  /** Starts again after a wait; says so only once. */
  private async retry(message: string): Promise<void> {
    if (!this.retrying) {
      const said = `Redraft's server could not be started and is tried again: ${message}`;
      void vscode.window.showErrorMessage(said, "Show log").then((answer) => answer && this.output.show());
    }
    this.retrying = true;
    const failed = this.client;
    await this.backOff.wait();
    // A restart by hand or a stop has taken over meanwhile.
    if (this.client !== failed || this.disposed) return;
    await this.restart();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async configure(): Promise<void> {
    if (this.client) await sendSettings(this.client);
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.attachments.forEach((attachment) => void attachment.dispose());
    this.attachments = [];
    await client?.dispose().catch((error: unknown) => this.output.warn(String(error)));
  }

  dispose(): void {
    this.disposed = true;
    this.edits.dispose();
    this.nextEdits.dispose();
    this.previews.dispose();
    this.status.dispose();
    this.output.dispose();
  }

  private async connect(command: string): Promise<void> {
    this.output.info(`starting ${command} serve`);
    const asked = { fetchModel: this.environment.wantsModel };
    const key = await keyEnvironment(this.secrets);
    const client = makeClient(command, this.output, this.backOff, key, this.nextEdits, asked);
    this.client = client;
    this.attachments = [
      this.status.attach(client),
      this.edits.attach(client),
      this.nextEdits.attach(client),
      client.onNotification(chooseModelNotification, () => void chooseModel(client, this.command)),
    ];
    await client.start();
    this.retrying = false;
    void this.compareVersions(client);
  }

  private async snooze(): Promise<void> {
    const minutes = await chooseMinutes();
    if (minutes !== undefined) await this.ask("redraft.snooze", { minutes });
  }

  /** Runs a command of the server on the document in front. */
  private async ask(command: string, given: object = {}): Promise<void> {
    if (this.client?.state !== State.Running) {
      await this.showStatus();
      return;
    }
    const document = vscode.window.activeTextEditor?.document.uri;
    const values = [document ? { uri: this.client.code2ProtocolConverter.asUri(document), ...given } : given];
    await this.client.sendRequest("workspace/executeCommand", { command, arguments: values });
    await this.status.refresh();
  }

  private async showStatus(): Promise<void> {
    await this.status.refresh();
    const choice = await vscode.window.showInformationMessage(`Redraft: ${this.status.summary}`, "Menu");
    if (choice) await vscode.commands.executeCommand("redraft.menu");
  }

  private async setServerKey(): Promise<void> {
    if (await setServerKey(this.secrets)) await this.restart();
  }

  private async runDoctor(): Promise<void> {
    if (this.command) await runVisibly("doctor", this.command, ["doctor"]);
    else await this.start();
  }

  private async install(by: () => Promise<boolean>): Promise<void> {
    if (await by()) await this.restart();
  }

  /** Compares the server that runs with the one that this extension carries, and offers to upgrade an older one. */
  private async compareVersions(client: LanguageClient): Promise<void> {
    const { serverInfo, capabilities } = client.initializeResult ?? {};
    const experimental = capabilities?.experimental as { redraft?: { protocol?: number } } | undefined;
    const running = { version: serverInfo?.version, protocol: experimental?.redraft?.protocol };
    const pinned = await this.environment.pinned();
    const fit = fitOf(pinned, running);
    const found = `The server at ${this.command ?? ""} is version ${running.version ?? "unknown"}`;
    if (fit === "fits") return;
    this.output.warn(`${found}; this extension carries ${pinned.version}`);
    if (fit === "ahead") {
      void vscode.window.showWarningMessage(`${found}, which is newer than this extension can speak to. Update the extension.`);
      return;
    }
    const consequence = fit === "misfit" ? ", too old for this extension" : ", older than this extension's";
    if (serverPath()) {
      void vscode.window.showWarningMessage(`${found}${consequence}. Upgrade it, or clear redraft.serverPath.`);
    } else if (await this.environment.offer(`${found}${consequence}. Install the newer one into a private environment?`)) {
      await this.restart();
    }
  }
}

let extension: Extension | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const started = new Extension(context);
  extension = started;
  context.subscriptions.push(started);
  for (const [id, run] of Object.entries(started.commands())) {
    context.subscriptions.push(vscode.commands.registerCommand(id, run));
  }
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((event) => {
      const restarts = ["redraft.serverPath", "redraft.server"];
      if (restarts.some((section) => event.affectsConfiguration(section))) void started.restart();
      else if (event.affectsConfiguration("redraft")) void started.configure();
    }),
  );
  await started.start();
}

export async function deactivate(): Promise<void> {
  await extension?.stop();
}

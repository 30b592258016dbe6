/** The connection to the server: started, configured, and started again when it ends. */

import * as vscode from "vscode";
import type { LanguageClientOptions } from "vscode-languageclient/node";
import { CloseAction, ErrorAction, LanguageClient, State, TransportKind } from "vscode-languageclient/node";

import type { BackOff } from "./backoff";
import type { NextEdits } from "./nextEdits";
import { serverSettings, withoutClientSettings } from "./settings";

export const DOCUMENTS = ["file", "untitled", "vscode-notebook-cell", "vscode-vfs"].map((scheme) => ({ scheme }));

/** `asked`: what the user said yes to before there was a server. */
export function makeClient(
  command: string,
  output: vscode.LogOutputChannel,
  backOff: BackOff,
  environment: Record<string, string>,
  nextEdits: NextEdits,
  asked: { fetchModel: boolean },
): LanguageClient {
  const options: LanguageClientOptions = {
    documentSelector: DOCUMENTS,
    outputChannel: output,
    // The server asks for the section by resource; what only the extension reads is none of its business.
    initializationOptions: () => ({ redraft: { chooseModel: true, editCommand: true, ...asked }, settings: serverSettings() }),
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue }),
      closed: async () => {
        await backOff.wait();
        return { action: CloseAction.Restart, handled: true };
      },
    },
    initializationFailedHandler: (error) => {
      output.error(error instanceof Error ? error : String(error));
      return false;
    },
    middleware: {
      provideInlineCompletionItems: (document, position, context, token, next) =>
        nextEdits.suggestions(document, position, context.selectedCompletionInfo !== undefined, token, (byHand) => {
          const { Automatic } = vscode.InlineCompletionTriggerKind;
          return next(document, position, byHand ? context : { ...context, triggerKind: Automatic }, token);
        }),
      workspace: {
        configuration: async (params, token, next) => {
          const answer = await next(params, token);
          if (!Array.isArray(answer)) return answer;
          return params.items.map((item, index) => {
            const value: unknown = answer[index];
            const whole = item.section === "redraft" && typeof value === "object" && value !== null;
            return whole ? withoutClientSettings(value as Record<string, unknown>) : value;
          });
        },
      },
    },
  };
  return new LanguageClient(
    "redraft",
    "Redraft",
    // The key of a server goes this way: messages may be written to the log.
    {
      command,
      args: ["serve"],
      transport: TransportKind.stdio,
      options: { env: { ...process.env, ...environment } },
    },
    options,
  );
}

/** Tells the server that settings changed; it takes these, or asks again for each folder. */
export async function sendSettings(client: LanguageClient): Promise<void> {
  if (client.state !== State.Running) return;
  await client.sendNotification("workspace/didChangeConfiguration", { settings: { redraft: serverSettings() } });
}

/** Finds the server's command: the user's setting, then the private environment, then PATH. Pure: no editor in here. */

import { access, constants, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

export class ServerMissing extends Error {}

/**
 * Absolute path of an executable `redraft`, or undefined when there is none. Throws ServerMissing when the `chosen` one,
 * empty for no choice, cannot be run.
 */
export async function findServer(chosen: string, privateCommand: string | undefined): Promise<string | undefined> {
  if (chosen) {
    const expanded = chosen.replace(/^~(?=$|[\\/])/, homedir());
    if (await isExecutable(expanded)) return expanded;
    throw new ServerMissing(`redraft.serverPath is ${chosen}, which is no executable file. Correct or clear it.`);
  }
  // The private one is there because the user wanted it, and is upgraded with the extension.
  return (privateCommand && (await executable(privateCommand))) ?? (await onPath("redraft"));
}

export async function onPath(name: string): Promise<string | undefined> {
  const endings = process.platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    // A relative entry would run whatever the opened folder holds.
    if (!path.isAbsolute(folder)) continue;
    for (const ending of endings) {
      const found = await executable(path.join(folder, name + ending));
      if (found) return found;
    }
  }
  return undefined;
}

async function executable(file: string): Promise<string | undefined> {
  return (await isExecutable(file)) ? file : undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return path.isAbsolute(file) && (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** Finds the server's command: the user's setting, then PATH, then the private environment. */

import { access, constants, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

import { privateCommand } from "./environment";
import { serverPath } from "./settings";

export class ServerMissing extends Error {}

/** Absolute path of an executable `redraft`, or undefined when there is none. */
export async function findServer(storage: string): Promise<string | undefined> {
  const chosen = serverPath();
  if (chosen) {
    const expanded = chosen.replace(/^~(?=$|[\\/])/, homedir());
    if (await isExecutable(expanded)) return expanded;
    throw new ServerMissing(`redraft.serverPath is ${chosen}, which is no executable file. Correct or clear it.`);
  }
  return (await onPath("redraft")) ?? (await executable(privateCommand(storage)));
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

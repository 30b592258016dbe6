/** Where the server's command is looked for, on a real file system. */

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { findServer, ServerMissing } from "../src/server";

let folder = "";
const before = { PATH: process.env.PATH, HOME: process.env.HOME };

async function command(...names: string[]): Promise<string> {
  const file = path.join(folder, ...names);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, "#!/bin/sh\n");
  await chmod(file, 0o755);
  return file;
}

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "redraft-"));
  process.env.PATH = path.join(folder, "bin");
  process.env.HOME = folder;
});

afterEach(async () => {
  Object.assign(process.env, before);
  await rm(folder, { recursive: true });
});

void test("the setting comes first, then the private environment, then PATH", async () => {
  const onPath = await command("bin", "redraft");
  assert.equal(await findServer("", undefined), onPath);
  assert.equal(await findServer("", path.join(folder, "removed", "redraft")), onPath);
  const own = await command("private", "redraft");
  assert.equal(await findServer("", own), own);
  const chosen = await command("chosen", "redraft");
  assert.equal(await findServer(chosen, own), chosen);
  assert.equal(await findServer("~/chosen/redraft", own), chosen);
});

void test("nothing is found where nothing is", async () => {
  assert.equal(await findServer("", path.join(folder, "private", "redraft")), undefined);
});

void test("a setting that cannot be run is told, not passed over", async () => {
  await command("bin", "redraft");
  const plain = path.join(folder, "notes");
  await writeFile(plain, "");
  for (const wrong of [plain, folder, path.join(folder, "missing")]) {
    await assert.rejects(findServer(wrong, ""), ServerMissing);
  }
});

void test("relative entries of PATH, which the opened folder could fill, are passed over", async () => {
  await command("here", "redraft");
  const started = process.cwd();
  process.chdir(folder);
  process.env.PATH = ["here", ".", ""].join(path.delimiter);
  try {
    assert.equal(await findServer("", path.join(folder, "none")), undefined);
  } finally {
    process.chdir(started);
  }
});

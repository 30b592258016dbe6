/** Commands that run where the user sees every line of them. */

import * as vscode from "vscode";

/** Exit code of a command that runs as a task: its terminal stays open when it has ended. */
export async function runVisibly(
  name: string,
  command: string,
  args: string[],
  folder?: string,
): Promise<number | undefined> {
  const execution = new vscode.ProcessExecution(command, args, folder === undefined ? {} : { cwd: folder });
  const task = new vscode.Task({ type: "process" }, vscode.TaskScope.Global, name, "Redraft", execution);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated };
  const ended = new Promise<number | undefined>((resolve) => {
    const listener = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution.task.name !== name) return;
      listener.dispose();
      resolve(event.exitCode);
    });
  });
  await vscode.tasks.executeTask(task);
  return ended;
}

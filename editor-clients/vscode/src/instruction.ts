/** The box that asks for an instruction: what is typed, what was asked before, what the server offers ready-made. */

import * as vscode from "vscode";

const HISTORY_KEY = "redraft.instructions";
const HISTORY_LENGTH = 30;

interface InstructionItem extends vscode.QuickPickItem {
  instruction?: string;
}

/** An instruction that the server offers ready-made. */
export interface Preset {
  title: string;
  instruction: string;
}

export class InstructionBox {
  constructor(private readonly memory: vscode.Memento) {}

  get history(): string[] {
    return this.memory.get<string[]>(HISTORY_KEY, []);
  }

  /** What the user wants done, or undefined when the box was left. `presets` may arrive after the box is shown. */
  async ask(title: string, presets: Promise<Preset[]>): Promise<string | undefined> {
    const box = vscode.window.createQuickPick<InstructionItem>();
    box.title = title;
    box.placeholder = "What should change? For example: add type hints";
    box.matchOnDetail = true;
    let offered: Preset[] = [];
    // Whether the list on the screen is the one for what is typed: until it is, none of its entries is meant.
    let current = false;
    const refresh = (): void => {
      current = false;
      box.items = this.items(box.value, offered);
    };
    refresh();
    // Without them the box is as useful; why they are missing is in the log.
    presets.then(
      (found) => {
        offered = found;
        refresh();
      },
      () => undefined,
    );
    const chosen = new Promise<InstructionItem | undefined>((resolve) => {
      box.onDidChangeValue(refresh);
      box.onDidChangeActive(() => {
        current = true;
      });
      box.onDidAccept(() => {
        const typed = { label: box.value, instruction: box.value };
        resolve((current ? box.activeItems[0] : undefined) ?? typed);
      });
      box.onDidHide(() => resolve(undefined));
    });
    box.show();
    const item = await chosen;
    box.dispose();
    const instruction = item?.instruction?.trim();
    if (!instruction) return undefined;
    await this.remember(instruction);
    return instruction;
  }

  private items(typed: string, presets: Preset[]): InstructionItem[] {
    const items: InstructionItem[] = [];
    if (typed.trim()) items.push({ label: typed, description: "Enter", instruction: typed, alwaysShow: true });
    const former = this.history.filter((instruction) => instruction !== typed.trim());
    if (presets.length > 0) {
      items.push({ label: "Ready-made", kind: vscode.QuickPickItemKind.Separator });
      items.push(...presets.map(({ title, instruction }) => ({ label: title, instruction })));
    }
    if (former.length > 0) {
      items.push({ label: "Asked before", kind: vscode.QuickPickItemKind.Separator });
      items.push(...former.map((instruction) => ({ label: instruction, instruction })));
    }
    return items;
  }

  private async remember(instruction: string): Promise<void> {
    const rest = this.history.filter((former) => former !== instruction);
    await this.memory.update(HISTORY_KEY, [instruction, ...rest].slice(0, HISTORY_LENGTH));
  }
}

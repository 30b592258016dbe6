/** Whether a server fits this extension. Pure: no editor in here. */

export interface PinnedServer {
  version: string;
  protocol: number;
}

/** What a server says of itself; an old one says less. */
export interface RunningServer {
  version?: string | undefined;
  protocol?: number | undefined;
}

/** `upgrade`: an older one that works; `misfit` and `ahead`: one that speaks an older or newer protocol. */
export type Fit = "fits" | "upgrade" | "misfit" | "ahead";

export function fitOf(pinned: PinnedServer, running: RunningServer): Fit {
  const protocol = running.protocol ?? 0;
  if (protocol !== pinned.protocol) return protocol < pinned.protocol ? "misfit" : "ahead";
  return isOlder(running.version ?? "0", pinned.version) ? "upgrade" : "fits";
}

/** Versions as numbers with dots; what follows the numbers, as in 1.2.0rc1, comes before the version without it. */
export function isOlder(one: string, other: string): boolean {
  const [numbers, rest] = partsOf(one);
  const [otherNumbers, otherRest] = partsOf(other);
  for (let index = 0; index < Math.max(numbers.length, otherNumbers.length); index += 1) {
    const difference = (numbers[index] ?? 0) - (otherNumbers[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  if (rest === "" || otherRest === "") return rest !== "" && otherRest === "";
  return rest < otherRest;
}

function partsOf(version: string): [number[], string] {
  const numbers = /^\d+(?:\.\d+)*/.exec(version)?.[0] ?? "";
  // A local build (+…) is the version that it was built from.
  return [numbers.split(".").map(Number), version.slice(numbers.length).replace(/\+.*$/, "")];
}

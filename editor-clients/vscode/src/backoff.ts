/** How long to wait before the server is started again. Pure: no editor in here. */

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 30_000;
const STABLE_AFTER_MS = 60_000;

/** Longer each time, until the server has stayed up for a minute. */
export class BackOff {
  private delay = FIRST_DELAY_MS;
  private lastEnd = -Infinity;

  /** The delay after an end of the server at this moment. */
  next(now: number): number {
    if (now - this.lastEnd > STABLE_AFTER_MS) this.delay = FIRST_DELAY_MS;
    this.lastEnd = now;
    const delay = this.delay;
    this.delay = Math.min(2 * delay, LONGEST_DELAY_MS);
    return delay;
  }

  async wait(): Promise<void> {
    const delay = this.next(Date.now());
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

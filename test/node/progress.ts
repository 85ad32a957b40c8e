/** Progress messages and waiting for long runs. */

const began = performance.now();

/** Prints a line with the seconds since the start to standard error, where it is visible even during a whole run. */
export function say(text: string): void {
  console.error(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${text}`);
}

/** Milliseconds between checks while waiting. */
const LOOK_MS = 500;
/** Milliseconds between messages while waiting. */
const SAY_MS = 20_000;

/**
 * Waits until `look` returns null. Any other value is printed while waiting.
 * @param what the goal for messages: `the node to be ready`
 * @throws after `limitMs`, with the last state
 */
export async function until(
  what: string,
  look: () => Promise<string | null> | string | null,
  limitMs = 180_000,
): Promise<void> {
  const from = performance.now();
  let said = from;
  for (;;) {
    const state = await look();
    const now = performance.now();
    if (state === null) return;
    if (now - from > limitMs)
      throw new Error(`waited ${Math.round(limitMs / 1000)} s for ${what}: ${state}`);
    if (now - said > SAY_MS) {
      said = now;
      say(`waiting for ${what}: ${state.split('\n')[0]!.slice(0, 160)}`);
    }
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

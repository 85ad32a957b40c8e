/** Feeds an incident's packets to a live model that uses the incident's clock. */
import { LiveModel, type LiveModelParts } from '../../src/tools/watch/live-model.ts';
import type { Captured } from './packets.ts';

/** Milliseconds between clock steps. */
const STEP_MS = 1000;

/**
 * Feeds packets to a model and advances its clock every second.
 * @param each called each time the clock has advanced
 */
export function watched(
  packets: readonly Captured[],
  parts: LiveModelParts = {},
  each: (model: LiveModel, nowMs: number) => void = () => undefined,
  untilMs: number = packets.at(-1)!.timeMs,
): LiveModel {
  const model = new LiveModel(parts);
  const input = model.open('interface veth0, port 53');
  let at = 0;
  for (let nowMs = packets[0]!.timeMs; nowMs <= untilMs + STEP_MS; nowMs += STEP_MS) {
    for (; at < packets.length && packets[at]!.timeMs <= nowMs; at++) {
      const { bytes, timeMs, port = 0 } = packets[at]!;
      input.reading.takeNetwork(bytes, 0, bytes.length, timeMs, port);
    }
    model.advance(nowMs);
    each(model, nowMs);
  }
  return model;
}

/** Feeds an incident's packets to a live model that uses the incident's clock. */
import assert from 'node:assert/strict';
import type { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { AddressOwner, AddressOwners } from '../../src/tools/pods/address-owners.ts';
import { LiveModel, type LiveModelParts } from '../../src/tools/watch/live-model.ts';
import type { Captured } from './packets.ts';

/** Real time after which a condition counts as never met, in milliseconds. */
const PATIENCE_MS = 60_000;

/** Advances the servers' time, and the model's to this machine's, until a condition holds. */
export async function modelUntil(
  model: LiveModel,
  worlds: readonly { readonly clock: VirtualClock }[],
  holds: () => boolean,
): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    assert.ok(Date.now() < end, `never met: ${holds.toString()}`);
    for (const { clock } of worlds) await clock.advance(20);
    await new Promise((resolve) => setTimeout(resolve, 10));
    model.advance(Date.now());
  }
}

/** A pod in the namespace `shop`. */
export function shopPod(name: string, workload: string): AddressOwner {
  return { kind: 'pod', namespace: 'shop', name, workload, node: 'node1' };
}

/** The owners of two pods of one workload, and of the DNS service. */
export const cartOwners: AddressOwners = new Map([
  ['10.244.1.1', shopPod('cart-1', 'deploy/cart')],
  ['10.244.1.2', shopPod('cart-2', 'deploy/cart')],
  [
    '10.96.0.10',
    { kind: 'service', namespace: 'kube-system', name: 'kube-dns', workload: '', node: '' },
  ],
]);

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

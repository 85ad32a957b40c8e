/**
 * The control part of `cache`, which runs in the main thread: handover to another process and administrator commands.
 */
import { Problem } from '../../base/problem.ts';
import type { AdminCommand, ControlContext } from '../../engine/contract/control-context.ts';
import { foldName, NameError, parseName } from '../../wire/name.ts';
import { shareCache } from './handover.ts';
import type { CacheMessage, CacheOrder, Inspected } from './cache-messages.ts';

/** Workers that do not respond within this many milliseconds are reported as missing. */
const WAIT_MS = 2000;
/** Default and maximum number of entries that each worker lists. */
const ENTRIES_MAX = 500;

interface RunningOrder {
  readonly told: Map<number, Inspected>;
  readonly workers: number;
  over(): void;
}

export interface CacheReport {
  readonly servers: readonly string[];
  readonly zones: readonly string[];
  readonly view: string;
  /** Number of workers. `told` excludes those that did not respond in time. */
  readonly workers: number;
  readonly told: readonly (Omit<Inspected, 'kind' | 'id'> & { readonly worker: number })[];
}

export function controlCache(_options: unknown, context: ControlContext): void {
  const packed = shareCache(context);
  const waiting = new Map<number, RunningOrder>();
  let orders = 0;
  context.onMessage((message, worker) => {
    const told = message as CacheMessage;
    if (told.kind === 'packed') return packed(told);
    const order = waiting.get(told.id);
    if (order === undefined) return;
    order.told.set(worker, told);
    if (order.told.size >= order.workers) order.over();
  });
  const command =
    (kind: 'explain' | 'flush'): AdminCommand =>
    async (words) => {
      const name = nameOf(words.get('name') ?? '');
      const limit = limitOf(words.get('limit'));
      const id = ++orders;
      const below = words.get('below') === 'true';
      const told = await new Promise<RunningOrder['told']>((resolve) => {
        const order: RunningOrder = {
          told: new Map(),
          workers: context.workers(),
          over() {
            timer.cancel();
            waiting.delete(id);
            resolve(order.told);
          },
        };
        const timer = context.clock.after(WAIT_MS, () => order.over());
        waiting.set(id, order);
        context.publish({ kind, id, name, below, limit } satisfies CacheOrder);
        if (order.workers === 0) order.over();
      });
      const { servers, zones, view } = context;
      return {
        servers,
        zones,
        view,
        workers: context.workers(),
        told: [...told]
          .toSorted(([a], [b]) => a - b)
          .map(([worker, { found, entries, size }]) => ({ worker, found, entries, size })),
      } satisfies CacheReport;
    };
  context.offerCommand('cache/explain', command('explain'));
  context.offerCommand('cache/flush', command('flush'));
}

function nameOf(text: string): Uint8Array {
  try {
    if (text !== '') return foldName(parseName(text.endsWith('.') ? text : `${text}.`));
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    throw wrong(`${JSON.stringify(text)} is not a name: ${error.message}`);
  }
  throw wrong('which name?');
}

function limitOf(text: string | undefined): number {
  const limit = text === undefined ? ENTRIES_MAX : Number(text);
  if (Number.isInteger(limit) && limit >= 0 && limit <= ENTRIES_MAX) return limit;
  throw wrong(`limit must be a number up to ${ENTRIES_MAX}`);
}

function wrong(text: string): Problem {
  return new Problem({
    code: 'admin-wrong',
    text,
    remedy: 'Example: ndots cache explain www.example.com',
  });
}

import type { Event, ServeEvent } from './events.ts';
import { questionOf } from './neighbour.ts';
import { Stage, timeOf } from './stage.ts';

export interface Outcome {
  readonly event: ServeEvent;
  readonly corefile: string;
  /** Empty: equal. */
  readonly differences: readonly string[];
  /** Why it cannot be replayed here, or null if it was replayed. */
  readonly inapplicable: string | null;
}

/** Groups a test process's exchanges by handler. */
export function byHandler(events: readonly Event[]): ServeEvent[][] {
  const groups = Map.groupBy(
    events.filter((event) => event.kind === 'serve'),
    // Handlers that are values rather than pointers can only be distinguished by their state.
    ({ handler, state }) =>
      handler > 0 ? String(handler) : JSON.stringify({ ...state, now: 0, objects: 0 }),
  );
  return [...groups.values()];
}

/** Replays one handler's exchanges in order. */
export async function replay(events: readonly ServeEvent[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const batches = batchesOf(events);
  let stage: Stage | null = null;
  try {
    for (const [nth, batch] of batches.entries()) {
      const event = batch[0]!;
      const corefile = corefileOf(event, events);
      const inapplicable = reasonAgainst(event);
      let differences: readonly string[][] = [];
      if (inapplicable === null) {
        if (stage?.corefile !== corefile || !stage.reaches(event)) {
          await stage?.close();
          stage = await Stage.open(corefile, event, events);
          for (const before of batches.slice(0, nth))
            if (reasonAgainst(before[0]!) === null && timeOf(before[0]!) <= timeOf(event))
              await stage.ask(before);
        }
        differences = await stage.ask(batch);
      }
      for (const [at, each] of batch.entries())
        outcomes.push({ event: each, corefile, inapplicable, differences: differences[at] ?? [] });
    }
  } finally {
    await stage?.close();
  }
  return outcomes;
}

function batchesOf(events: readonly ServeEvent[]): ServeEvent[][] {
  return [...Map.groupBy(events, ({ together }) => together).values()];
}

function reasonAgainst({ garbled, state, panic, remote }: ServeEvent): string | null {
  if (garbled === true) return 'a message that cannot be sent';
  if (state.beyond !== undefined) return state.beyond;
  if (panic !== undefined) return 'the test ends in a panic';
  if (/^\w+ :/.test(remote)) return 'a client without an address';
  return null;
}

function corefileOf({ plugin, state }: ServeEvent, all: readonly ServeEvent[]): string {
  // Servers refuse classes other than IN unless a block has a plugin for them.
  const classes = plugin !== 'chaos' && all.some(({ query }) => questionOf(query).class !== 1);
  const lines = [
    ...(plugin === 'errors' ? [] : ['errors']),
    ...(classes ? ['chaos'] : []),
    ...(state.metadata === undefined ? [] : ['metadata', 'given']),
    state.lines,
    'neighbour',
  ];
  return `${(state.keys ?? ['.']).join(', ')} {\n${lines.join('\n')}\n}\n`;
}

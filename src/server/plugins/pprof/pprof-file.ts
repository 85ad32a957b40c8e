/** Thread profiles in pprof format. */
import type { HeapProfiler, Profiler, Runtime } from 'node:inspector';
import { Profile, StringTable, type LabelInput } from 'pprof-format';
import {
  INTERVAL_BYTES,
  INTERVAL_US,
  type ProfileKind,
  type ThreadProfile,
} from './thread-profile.ts';

/** The runtime's names for idle time. */
const IDLE: ReadonlySet<string> = new Set(['(idle)']);

/**
 * Builds one uncompressed file for all threads, in which each sample is labelled with its thread.
 * @param threads profiles by thread name
 * @param beganMs milliseconds since 1970
 */
export function pprofFile(
  kind: ProfileKind,
  threads: ReadonlyMap<string, ThreadProfile>,
  beganMs: number,
  lastedMs: number,
): Uint8Array {
  const file = new File();
  for (const [thread, { kind: of, profile }] of threads) {
    const label = file.label('thread', thread);
    if (of === 'profile') file.addTimes(profile, label);
    else file.addMemory(profile, label);
  }
  return file.encode(kind, beganMs, lastedMs);
}

interface CodePlace {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

class File {
  readonly #strings = new StringTable();
  readonly #locations = new Map<string, number>();
  readonly #location: object[] = [];
  readonly #function: object[] = [];
  readonly #sample: object[] = [];

  label(key: string, text: string): LabelInput {
    return { key: this.#strings.dedup(key), str: this.#strings.dedup(text) };
  }

  /** Adds the times from a profile. The time between two samples is attributed to the stack of the first one. */
  addTimes({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile, label: LabelInput): void {
    const parents = new Map<number, number>();
    const byId = new Map(nodes.map((node) => [node.id, node]));
    for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id);
    const spent = new Map<number, { count: number; us: number }>();
    samples.forEach((id, at) => {
      const sum = spent.get(id) ?? { count: 0, us: 0 };
      sum.count++;
      sum.us += Math.max(0, timeDeltas[at + 1] ?? 0);
      spent.set(id, sum);
    });
    for (const [id, { count, us }] of spent) {
      if (IDLE.has(byId.get(id)?.callFrame.functionName ?? '')) continue;
      const stack: number[] = [];
      for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
        const frame = byId.get(at)?.callFrame;
        if (frame !== undefined && frame.functionName !== '(root)') stack.push(this.#at(frame));
      }
      if (stack.length > 0) this.#add(stack, [count, us * 1000], label);
    }
  }

  addMemory({ head }: HeapProfiler.SamplingHeapProfile, label: LabelInput): void {
    const visit = (node: HeapProfiler.SamplingHeapProfileNode, above: readonly number[]): void => {
      const stack =
        node.callFrame.functionName === '(root)' ? above : [this.#at(node.callFrame), ...above];
      if (node.selfSize > 0 && stack.length > 0) this.#add([...stack], [node.selfSize], label);
      for (const child of node.children) visit(child, stack);
    };
    visit(head, []);
  }

  encode(kind: ProfileKind, beganMs: number, lastedMs: number): Uint8Array {
    const type = (name: string, unit: string): { type: number; unit: number } => ({
      type: this.#strings.dedup(name),
      unit: this.#strings.dedup(unit),
    });
    const types =
      kind === 'profile'
        ? [type('samples', 'count'), type('cpu', 'nanoseconds')]
        : [type('inuse_space', 'bytes')];
    return new Profile({
      sampleType: types,
      sample: this.#sample,
      location: this.#location,
      function: this.#function,
      stringTable: this.#strings,
      timeNanos: BigInt(Math.round(beganMs)) * 1_000_000n,
      durationNanos: BigInt(Math.round(lastedMs)) * 1_000_000n,
      periodType: types.at(-1)!,
      period: kind === 'profile' ? INTERVAL_US * 1000 : INTERVAL_BYTES,
    }).encode();
  }

  #add(stack: number[], value: number[], label: LabelInput): void {
    this.#sample.push({ locationId: stack, value, label: [label] });
  }

  /** Returns a code location's number, counted from 1. */
  #at({ functionName, url, lineNumber }: CodePlace | Runtime.CallFrame): number {
    const key = `${functionName}\n${url}\n${lineNumber}`;
    const known = this.#locations.get(key);
    if (known !== undefined) return known;
    const id = this.#locations.size + 1;
    const name = this.#strings.dedup(functionName === '' ? '(anonymous)' : functionName);
    const filename = this.#strings.dedup(url);
    const line = Math.max(0, lineNumber + 1);
    this.#locations.set(key, id);
    this.#function.push({ id, name, systemName: name, filename, startLine: line });
    this.#location.push({ id, line: [{ functionId: id, line }] });
    return id;
  }
}

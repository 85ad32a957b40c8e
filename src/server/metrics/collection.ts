/** Combines the metrics from all threads for a scrape. */
import { clamp, limit } from '../base/limits.ts';
import type { Cells } from './cells.ts';
import { unlock } from './cells.ts';
import { type Exposed, printExposition } from './exposition.ts';
import { overflowValue } from './family.ts';
import type { ExpositionFormat, TextFormat } from './formats.ts';
import { MergedFamily, type MergedSeries, type MergedCells } from './merged.ts';
import { writeExposition } from './protobuf-exposition.ts';
import { difference, NameClaims, type Registration, type SeriesEvent } from './registration.ts';
import type { Counter, Family } from './registry.ts';
import { overflowHelp, overflowName, SharedRegistry } from './shared-registry.ts';
import { groupSamples, type MetricSample } from './sample.ts';

/** Maximum number of label sets per family across all threads, including ended ones. */
const mergedSeriesLimit = limit({ default: 5000, min: 1, max: 200_000 });

export interface CollectionOptions {
  /** Maximum label sets per family; default `mergedSeriesLimit.default`. */
  readonly series?: number;
  /** Called when a sampler's values are missing from a scrape. */
  readonly onError?: (error: unknown) => void;
}

const sampleErrorsName = 'ndots_metrics_sample_errors_total';
const sampleErrorsHelp =
  'Number of times that values could not be read at scrape time and were omitted.';

/**
 * The metrics from all threads, as seen from the thread that is scraped. It receives the registrations of every
 * `SharedRegistry` (including its own thread's). When it prints, it reads the counts from shared memory, without
 * involving the other threads. Counters and histograms are summed, and gauges are merged as declared. An ended thread's
 * counts stay in the sum, so that no counter falls when a worker is restarted. Its gauges disappear. If one thread
 * removes a label set that others still have, its counts stay as well. The label set disappears once the last thread
 * removes it.
 */
export class Collection {
  readonly #limit: number;
  readonly #onError: (error: unknown) => void;
  readonly #families = new Map<string, MergedFamily>();
  readonly #claims = new NameClaims();
  readonly #threads = new Map<string, Thread>();
  readonly #samplers = new Set<() => Iterable<MetricSample>>();
  readonly #overflow: Family<readonly ['family'], Counter>;
  readonly #sampleErrors: Counter;

  constructor(options: CollectionOptions = {}) {
    this.#limit = clamp(options.series ?? mergedSeriesLimit.default, mergedSeriesLimit);
    this.#onError = options.onError ?? (() => {});
    // The collection's own metrics come from a registry like any other, on behalf of a thread without a name.
    const own = new SharedRegistry((event) => this.add('', event));
    this.#overflow = own.counter(overflowName, overflowHelp, ['family']);
    this.#sampleErrors = own.counter(sampleErrorsName, sampleErrorsHelp);
  }

  /**
   * Processes an event from `thread`. Events must arrive in the order in which they were sent. Throws if threads
   * disagree about a family's shape, or if an event refers to something that was never announced. Both are bugs.
   */
  add(thread: string, event: Registration): void {
    let known = this.#threads.get(thread);
    if (known === undefined) {
      known = { blocks: new Map(), families: new Map(), holdings: new Map() };
      this.#threads.set(thread, known);
    }
    switch (event.event) {
      case 'block':
        known.blocks.set(event.block, new Float64Array(event.memory));
        return;
      case 'family':
        known.families.set(event.family, this.#familyOf(event.shape));
        return;
      case 'series':
        this.#addSeries(thread, known, event);
        return;
      case 'removal':
        this.#remove(thread, known, event.series, event.last);
    }
  }

  /**
   * Called when a thread has ended, after its last event. Its counts stay, its gauges disappear and its memory is
   * released. A successor may then use the same name.
   */
  retire(thread: string): void {
    const gone = this.#threads.get(thread);
    if (gone === undefined) return;
    this.#threads.delete(thread);
    for (const { family, series, part } of gone.holdings.values()) {
      series.retain(part);
      if (series.empty) family.drop(series);
    }
  }

  /**
   * Adds values that are computed at every scrape. If `fn` throws, or returns a name that is already registered or
   * sampled, its values are omitted from that scrape. This is counted in `ndots_metrics_sample_errors_total`.
   * @returns a function that removes them
   */
  sample(fn: () => Iterable<MetricSample>): () => void {
    this.#samplers.add(fn);
    return () => {
      this.#samplers.delete(fn);
    };
  }

  /** Prints everything as text, with families sorted by name and label sets by label values. */
  print(format: TextFormat): string {
    return printExposition(this.#expose(), format);
  }

  scrape(format: ExpositionFormat): string | Buffer {
    return format === 'protobuf' ? writeExposition(this.#expose()) : this.print(format);
  }

  #expose(): readonly Exposed[] {
    // Run the samplers first, so that this scrape already counts their errors.
    const exposed = this.#takeSamples();
    for (const [name, family] of this.#families) {
      if (family.size > 0) exposed.set(name, family.expose());
    }
    const names = [...exposed.keys()].toSorted();
    return names.map((name) => exposed.get(name)!);
  }

  #familyOf(shape: MergedFamily['shape']): MergedFamily {
    const known = this.#families.get(shape.name);
    if (known !== undefined) {
      const field = difference(known.shape, shape);
      if (field === null) return known;
      throw new Error(`metric ${shape.name}: threads have registered it with a different ${field}`);
    }
    this.#claims.claim(shape);
    const family = new MergedFamily(shape);
    this.#families.set(shape.name, family);
    return family;
  }

  #addSeries(thread: string, known: Thread, event: SeriesEvent): void {
    const cells = known.blocks.get(event.block);
    const family = known.families.get(event.family);
    if (cells === undefined || family === undefined) {
      throw new Error(`metrics of thread ${thread}: label set ${event.series} belongs to nothing`);
    }
    const part: MergedCells = { cells, at: event.at, native: event.native };
    const series = this.#seriesOf(family, event.values);
    series.join(part);
    known.holdings.set(event.series, { family, series, part });
  }

  #seriesOf(family: MergedFamily, values: readonly string[]): MergedSeries {
    const known = family.find(values);
    if (known !== null) return known;
    // The overflow counter must not overflow itself. It has at most one label set per family.
    const free = family.size < this.#limit || family.shape.name === overflowName;
    if (free || family.dropAbandoned()) return family.add(values);
    this.#overflow.with(family.shape.name).add(1);
    const shared = values.map(() => overflowValue);
    return family.find(shared) ?? family.add(shared);
  }

  #remove(thread: string, known: Thread, number: number, last: readonly number[]): void {
    const holding = known.holdings.get(number);
    if (holding === undefined) {
      throw new Error(`metrics of thread ${thread}: label set ${number} was never announced`);
    }
    const { family, series, part } = holding;
    known.holdings.delete(number);
    if (series.parts > 1) {
      series.retain(part, last);
    } else {
      series.leave(part);
      family.drop(series);
    }
    unlock(part.cells.buffer, part.at);
  }

  #takeSamples(): Map<string, Exposed> {
    const exposed = new Map<string, Exposed>();
    for (const fn of this.#samplers) {
      try {
        const group = groupSamples(fn());
        for (const name of group.keys()) {
          const owner = this.#claims.owner(name) ?? (exposed.has(name) ? 'another sampler' : null);
          if (owner !== null)
            throw new Error(`metric ${name}: sampled, but it belongs to ${owner}`);
        }
        for (const [name, family] of group) exposed.set(name, family);
      } catch (error) {
        this.#sampleErrors.add(1);
        this.#onError(error);
      }
    }
    return exposed;
  }
}

interface Thread {
  readonly blocks: Map<number, Cells>;
  readonly families: Map<number, MergedFamily>;
  /** Keyed by the number that the thread gave to the label set. */
  readonly holdings: Map<number, Holding>;
}

interface Holding {
  readonly family: MergedFamily;
  readonly series: MergedSeries;
  readonly part: MergedCells;
}

/** Servers' reloads, with the resulting changes to the Corefile and to the answers that clients got. */
import { appendTo } from '../../server/base/append-to.ts';
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import type { AnswerBook, ComparedAnswer, ReloadTime } from './answer-book.ts';
import { FairList } from './fair-list.ts';
import { CONFIGURATION_MAX, type ConfigurationFile } from '../../server/wire/dnstap.ts';
import type { ChangedAnswer, ReloadMark, ReloadRow } from './reload-shape.ts';

/** A server may reload this often in quick succession, and then once per interval, which is `reload`'s default. */
const QUICK_RELOADS = 5;
const RELOAD_EVERY_MS = 30_000;
/**
 * In milliseconds. Servers that load the same change within this time form one reload, because a ConfigMap spreads
 * slowly.
 */
const SAME_MS = 300_000;
/** The number of changed answers to store per reload, those with the most replies first. */
const CHANGED_MAX = 100;
/** The number of changed answers in the overview. */
const MARK_ANSWERS = 10;
/** The number of reloads whose files are stored, so that their answers can be predicted. */
const FILES_KEPT = 3;
/** The number of context lines around a change, as in `diff -u`. */
const CONTEXT = 3;
/** Limit on edits, because the library's running time grows with their square: 0.2 s for this number. */
const EDITS_MAX = 1000;

/** Longer diffs are cut, in characters. */
const DIFF_MAX = 32_768;
/** The estimated size in bytes of a changed answer, and of a client in it. */
const CHANGED_BYTES = 1500;
const CLIENT_BYTES = 60;

/** The files in a server's configuration, or null if their texts are unknown. */
export type ReportedFiles = readonly ConfigurationFile[] | null;

interface ReloadedServer {
  readonly number: number;
  readonly name: string;
  /** The result once a later reload has ended the comparison. Null while it continues. */
  ended: ServerResult | null;
}

interface ServerResult {
  /** The number of names and types that have answers from before and after the reload. */
  readonly compared: number;
  /** Most replies first. */
  readonly changed: readonly ComparedAnswer[];
}

/** Several servers that loaded the same change. */
interface Reload {
  readonly id: number;
  atMs: number;
  readonly diff: string;
  before: readonly ConfigurationFile[];
  after: readonly ConfigurationFile[];
  readonly servers: ReloadedServer[];
  /** The result once the comparison has ended on all servers. Null while it continues. */
  result: MergedAnswers | null;
}

export class ReloadHistory {
  readonly #answers: AnswerBook;
  readonly #list: FairList<Reload>;
  /** By server, the time until which its reloads use up the permitted rate. */
  readonly #busyUntilMs = new Map<number, number>();
  #nextId = 1;
  /** The latest configuration of each server. */
  readonly #configurations = new Map<number, ReportedFiles>();

  /** @param most the number of reloads to remember */
  constructor(most: number, answers: AnswerBook) {
    this.#list = new FairList(most);
    this.#answers = answers;
  }

  get #reloads(): readonly Reload[] {
    return this.#list.items;
  }

  /** The number of reloads discarded. */
  get forgotten(): number {
    return this.#list.forgotten;
  }

  /**
   * Records the configuration that a server is using.
   * @returns true if it is known and differs from the one before
   */
  configured(server: number, files: ReportedFiles): boolean {
    const before = this.#configurations.get(server) ?? null;
    if (before !== null && files !== null && printed(before) !== printed(files)) return true;
    this.#configurations.set(server, files ?? before);
    return false;
  }

  /**
   * Begins a reload.
   * @param files null if unknown
   * @returns its ID, or null if the server reports reloads too often, so that this one is not listed
   */
  reloaded(
    { number, name }: Pick<ReloadedServer, 'number' | 'name'>,
    switched: ReloadTime,
    files: ReportedFiles,
    nowMs: number,
  ): number | null {
    const before = this.#configurations.get(number) ?? null;
    this.#configurations.set(number, files);
    if (this.#isTooOften(number, nowMs)) return null;
    this.#end(number);
    const { fromMs: atMs } = switched;
    this.#answers.reload(number, switched);
    const diff = before === null || files === null ? '' : diffOf(before, files);
    const member: ReloadedServer = { number, name, ended: null };
    const same = this.#reloads.findLast(
      (each) =>
        diff !== '' &&
        each.diff === diff &&
        each.result === null &&
        Math.abs(each.atMs - atMs) <= SAME_MS &&
        !each.servers.some((other) => other.number === number),
    );
    if (same !== undefined) {
      same.servers.push(member);
      same.atMs = Math.min(same.atMs, atMs);
      return same.id;
    }
    const id = this.#nextId++;
    const reload: Reload = {
      ...{ id, atMs, diff, before: before ?? [], after: files ?? [] },
      ...{ servers: [member], result: null },
    };
    this.#list.add(reload, number);
    for (const old of this.#reloads.slice(0, -FILES_KEPT)) [old.before, old.after] = [[], []];
    return id;
  }

  /** Counts a reload. */
  #isTooOften(server: number, nowMs: number): boolean {
    const most = QUICK_RELOADS * RELOAD_EVERY_MS;
    const busyMs = Math.max(0, (this.#busyUntilMs.get(server) ?? nowMs) - nowMs);
    const nextMs = busyMs + RELOAD_EVERY_MS;
    // If more than the maximum is left, the clock was set back.
    if (busyMs <= most && nextMs > most) return true;
    this.#busyUntilMs.set(server, nowMs + (busyMs <= most ? nextMs : RELOAD_EVERY_MS));
    return false;
  }

  /** Forgets a server that is gone, but not its part in earlier reloads. */
  drop(number: number): void {
    this.#end(number);
    this.#configurations.delete(number);
    this.#busyUntilMs.delete(number);
    this.#answers.drop(number);
  }

  /** True if a server has reported its configuration or a reload. */
  get isReported(): boolean {
    return this.#configurations.size > 0 || this.#reloads.length > 0;
  }

  /** The estimated size in bytes of this many reloads, of which one is still being compared. */
  static limitBytes(reloads: number): number {
    const result = CHANGED_MAX * CHANGED_BYTES + DIFF_MAX;
    return reloads * result + 2 * FILES_KEPT * CONFIGURATION_MAX;
  }

  /** The estimated size in bytes. */
  get bytes(): number {
    let characters = 0;
    for (const { diff, before, after, servers, result } of this.#reloads) {
      characters += diff.length;
      for (const { text } of [...before, ...after]) characters += text.length;
      characters += CHANGED_BYTES * (result?.changed.length ?? 0);
      for (const { ended } of servers)
        for (const { addresses } of ended?.changed ?? [])
          characters += CHANGED_BYTES + CLIENT_BYTES * addresses.size;
    }
    return characters;
  }

  /** Newest first, with a few of the changed answers. */
  marks(): readonly ReloadMark[] {
    return this.#reloads
      .map((reload) => {
        const mark = markOf(reload, this.#merged(reload));
        return { ...mark, answers: mark.answers.slice(0, MARK_ANSWERS) };
      })
      .toReversed();
  }

  /** Newest first, with their details. */
  rows(): readonly ReloadRow[] {
    return this.#reloads
      .map((reload) => {
        const { diff, before, after } = reload;
        return { ...markOf(reload, this.#merged(reload)), diff, before, after };
      })
      .toReversed();
  }

  /** Stores the result of a server's latest reload before the next one begins or the server is gone. */
  #end(number: number): void {
    for (const reload of this.#reloads) {
      const { servers } = reload;
      for (const server of servers)
        if (server.number === number) server.ended ??= copyOf(this.#resultOf(number));
      if (reload.result !== null || servers.some(({ ended }) => ended === null)) continue;
      reload.result = this.#merged(reload);
      for (const server of servers) server.ended = { compared: 0, changed: [] };
    }
  }

  #resultOf(number: number): ServerResult {
    const all = [...this.#answers.compared(number)];
    const changed = all.filter(({ change }) => change !== null).toSorted(byReplies);
    return { compared: all.length, changed: changed.slice(0, CHANGED_MAX) };
  }

  #merged({ servers, result }: Reload): MergedAnswers {
    if (result !== null) return result;
    const found = new Map<string, ComparedAnswer[]>();
    let most = 0;
    for (const { number, ended } of servers) {
      const { compared, changed } = ended ?? this.#resultOf(number);
      most = Math.max(most, compared);
      for (const each of changed) {
        const key = `${each.type} ${each.name} ${JSON.stringify(each.change)}`;
        appendTo(found, key, each);
      }
    }
    const changed = [...found.values()].map(answerOf).toSorted(byReplies).slice(0, CHANGED_MAX);
    return { compared: most, changed };
  }
}

/** The book continues to count clients. */
function copyOf({ compared, changed }: ServerResult): ServerResult {
  return {
    compared,
    changed: changed.map((each) => ({ ...each, addresses: new Set(each.addresses) })),
  };
}

/** The same change to an answer on several servers. */
type ChangedAnswers = readonly ComparedAnswer[];

interface MergedAnswers {
  readonly compared: number;
  readonly changed: readonly ChangedAnswer[];
}

function answerOf(same: ChangedAnswers): ChangedAnswer {
  const [{ name, type, change }] = same as [ComparedAnswer];
  const addresses = new Set(same.flatMap((each) => [...each.addresses]));
  const sum = (of: (each: ComparedAnswer) => number): number =>
    same.reduce((all, each) => all + of(each), 0);
  return {
    ...{ name, type, ...change! },
    repliesBefore: sum(({ repliesBefore }) => repliesBefore),
    repliesAfter: sum(({ repliesAfter }) => repliesAfter),
    clients: same.some(({ hasMoreClients }) => hasMoreClients) ? null : addresses.size,
    servers: same.length,
  };
}

function markOf({ id, atMs, servers }: Reload, { compared, changed }: MergedAnswers): ReloadMark {
  const names = servers.map(({ name }) => name);
  return { id, atMs, servers: names, compared, changed: changed.length, answers: changed };
}

/** Most replies first. */
function byReplies(
  one: Pick<ChangedAnswer, 'repliesBefore' | 'repliesAfter' | 'name'>,
  other: Pick<ChangedAnswer, 'repliesBefore' | 'repliesAfter' | 'name'>,
): number {
  const replies = (each: Pick<ChangedAnswer, 'repliesBefore' | 'repliesAfter'>): number =>
    each.repliesBefore + each.repliesAfter;
  return replies(other) - replies(one) || (one.name < other.name ? -1 : 1);
}

/** Returns a unified diff of all files that differ. */
function diffOf(before: readonly ConfigurationFile[], after: readonly ConfigurationFile[]): string {
  const [old, now] = [before, after].map(
    (files) => new Map(files.map(({ file, text }) => [file, text])),
  ) as [Map<string, string>, Map<string, string>];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((file) => old.get(file) !== now.get(file))
    .map((file) => {
      const texts = [old.get(file) ?? '', now.get(file) ?? ''] as const;
      const patch = createTwoFilesPatch(file, file, ...texts, undefined, undefined, {
        context: CONTEXT,
        headerOptions: FILE_HEADERS_ONLY,
        maxEditLength: EDITS_MAX,
      });
      return patch ?? `--- ${file}\n+++ ${file}\nMore than ${EDITS_MAX} lines change.\n`;
    })
    .join('')
    .slice(0, DIFF_MAX);
}

function printed(files: readonly ConfigurationFile[]): string {
  return JSON.stringify(files);
}

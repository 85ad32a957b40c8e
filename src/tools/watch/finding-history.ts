/**
 * Tracks when each finding starts, continues and ends. Doctor's rules report only the last seconds, and their results
 * are stored here.
 */
import { rcodeName, typeName } from '../../server/wire/iana.ts';
import { addressOf } from '../capture/pair/seen-exchange.ts';
import type { Diagnosis } from '../doctor/diagnosis.ts';
import type { Finding } from '../doctor/findings/finding.ts';
import type { Observations } from '../doctor/observe/observations.ts';
import { whoOf } from '../doctor/report/who.ts';
import type { Parties } from './parties.ts';
import type { ExampleRow, FindingRow, NotFoundRow } from './view.ts';

/** The rules' findings in one window. */
export interface FindingsLook {
  readonly diagnosis: Diagnosis;
  readonly observed: Observations;
}

/** In milliseconds. A finding has ended if no rule has reported it for this long. A rule may miss one check. */
const HOLD_MS = 10_000;
/** In milliseconds. A finding seen only in the long window has ended when its newest evidence is older than this. */
const FRESH_MS = 40_000;
/** A finding that is less certain, or that does not stop programs, must be seen twice before it is raised. */
const SURE = 0.8;
/** The number of queries listed as evidence for a finding. */
const EXAMPLES = 20;

interface Remembered {
  row: FindingRow;
  /** True if it has ever started. */
  isShown: boolean;
  /** True if the last check found it, but it has not been found often enough to start. */
  isPending: boolean;
}

export interface FindingChange {
  readonly row: FindingRow;
  readonly kind: 'finding-began' | 'finding-ended';
}

export class FindingHistory {
  readonly #most: number;
  readonly #parties: Parties;
  readonly #known = new Map<string, Remembered>();
  excluded: readonly NotFoundRow[] = [];
  unknown: readonly NotFoundRow[] = [];
  /** The time at which the rules last ran. Null if they never did. */
  checkedMs: number | null = null;
  /** The number of findings discarded because there were too many. */
  forgotten = 0;

  /** @param most the number of findings to remember */
  constructor(most: number, parties: Parties) {
    this.#most = most;
    this.#parties = parties;
  }

  /**
   * Records what the rules are reporting now.
   * @param short the last seconds, or null if nothing was observed
   * @param long the last minutes, for quiet traffic, or null if the short window is enough
   * @returns what started and ended
   */
  take(
    short: FindingsLook | null,
    long: FindingsLook | null,
    nowMs: number,
  ): readonly FindingChange[] {
    this.checkedMs = nowMs;
    const changes: FindingChange[] = [];
    const held = holding(short, long, nowMs);
    for (const [id, [finding, observed]] of held) {
      const known = this.#known.get(id) ?? null;
      const isGoing = known !== null && known.isShown && known.row.endedMs === null;
      const isSure = finding.severity === 'critical' && finding.confidence >= SURE;
      if (!isGoing && !isSure && known?.isPending !== true) {
        const row = known?.row ?? this.#rowOf(id, finding, observed, null, nowMs);
        this.#known.set(id, { row, isShown: known?.isShown ?? false, isPending: true });
        continue;
      }
      const row = this.#rowOf(id, finding, observed, known, nowMs);
      const state = isGoing ? 'continues' : 'began';
      // Preserves the order in which findings were last seen.
      this.#known.delete(id);
      this.#known.set(id, { row: { ...row, state }, isShown: true, isPending: false });
      if (!isGoing) changes.push({ row, kind: 'finding-began' });
    }
    for (const [id, remembered] of this.#known) {
      if (held.has(id)) continue;
      const { row, isShown } = remembered;
      remembered.isPending = false;
      if (!isShown) this.#known.delete(id);
      else if (row.endedMs === null && nowMs - row.lastSeenMs >= HOLD_MS) {
        remembered.row = { ...row, state: 'ended', endedMs: row.lastSeenMs };
        changes.push({ row: remembered.row, kind: 'finding-ended' });
      }
    }
    this.#forget();
    const codes = new Set(this.rows.flatMap((row) => (row.endedMs === null ? [row.code] : [])));
    const isOpen = ({ code }: NotFoundRow): boolean => !codes.has(code);
    const looks = [short, long].filter((look) => look !== null);
    this.excluded = onceByCode(looks.flatMap(({ diagnosis }) => diagnosis.excluded)).filter(isOpen);
    const settled = new Set(this.excluded.map(({ code }) => code));
    this.unknown = onceByCode(looks.flatMap(({ diagnosis }) => diagnosis.unknown)).filter(
      (each) => isOpen(each) && !settled.has(each.code),
    );
    return changes;
  }

  /** All shown findings, unordered. */
  get rows(): readonly FindingRow[] {
    return [...this.#known.values()].flatMap(({ row, isShown }) => (isShown ? [row] : []));
  }

  #rowOf(
    id: string,
    finding: Finding,
    observed: Observations,
    remembered: Remembered | null,
    nowMs: number,
  ): FindingRow {
    const known = remembered?.isShown === true ? remembered.row : null;
    const { exchanges } = finding;
    const times = exchanges.map(({ sentMs }) => sentMs);
    const isGoing = known !== null && known.endedMs === null;
    const first = times.length === 0 ? nowMs : times.reduce((a, b) => Math.min(a, b));
    const { code, title, subject = '', severity, confidence } = finding;
    const { seen, why, fix, prove, disproved, places = [], affected = [] } = finding;
    const who = whoOf(finding, observed, this.#parties.owners);
    return {
      ...{ id, code, title, subject, severity, confidence, state: 'continues' },
      beganMs: isGoing ? known.beganMs : Math.min(nowMs, first),
      firstSeenMs: isGoing ? known.firstSeenMs : nowMs,
      lastSeenMs: nowMs,
      endedMs: null,
      times: isGoing ? known.times : (known?.times ?? 0) + 1,
      ...{ seen, why, fix, prove, disproved, places },
      who: {
        clients: who.clients,
        nodes: who.nodes,
        groups: who.groups.slice(0, EXAMPLES),
        resolvers: who.resolvers.map(([name, count]) => ({ name, count })),
        affected: affected.slice(0, EXAMPLES),
      },
      examples: exchanges
        .toSorted((one, other) => other.sentMs - one.sentMs)
        .slice(0, EXAMPLES)
        .map((exchange): ExampleRow => {
          const { client, server, name, type, sentMs, repliedMs, rcode } = exchange;
          return {
            client: this.#parties.at(client.address, sentMs),
            server: this.#parties.at(addressOf(server), sentMs),
            name,
            type: typeName(type),
            sentMs,
            tookMs: repliedMs === null ? null : repliedMs - sentMs,
            rcode: rcode < 0 ? '' : rcodeName(rcode),
          };
        }),
      queries: Math.max(exchanges.length, finding.hits ?? 0),
    };
  }

  #forget(): void {
    if (this.#known.size <= this.#most) return;
    const ended = [...this.#known].filter(([, { row }]) => row.endedMs !== null);
    for (const [id] of ended.slice(0, this.#known.size - this.#most)) {
      this.#known.delete(id);
      this.forgotten++;
    }
  }
}

/** The findings that apply now, with the observations behind them. */
function holding(
  short: FindingsLook | null,
  long: FindingsLook | null,
  nowMs: number,
): ReadonlyMap<string, readonly [Finding, Observations]> {
  const found = new Map<string, readonly [Finding, Observations]>();
  for (const finding of short?.diagnosis.findings ?? [])
    found.set(idOf(finding), [finding, short!.observed]);
  // Ends findings that did not show up in the last seconds although there was enough data.
  const over = new Set(short?.diagnosis.excluded.map(({ code }) => code));
  for (const finding of long?.diagnosis.findings ?? []) {
    if (found.has(idOf(finding)) || over.has(finding.code)) continue;
    const { exchanges } = finding;
    const isFresh =
      exchanges.length === 0 || exchanges.some(({ sentMs }) => nowMs - sentMs <= FRESH_MS);
    if (isFresh) found.set(idOf(finding), [finding, long!.observed]);
  }
  return found;
}

function idOf({ code, subject = '' }: Finding): string {
  return subject === '' ? code : `${code} ${subject}`;
}

function onceByCode(list: readonly NotFoundRow[]): readonly NotFoundRow[] {
  return [...new Map(list.map((each) => [each.code, each])).values()];
}

/** Sends queries with dig. */
import { spawnSync } from 'node:child_process';

/** A reply as dig printed it. */
export interface Dug {
  /** `NOERROR`, `NXDOMAIN` …, or empty if there is no reply. */
  readonly status: string;
  /** The flags in dig's words and order, e.g. `qr aa rd`. */
  readonly flags: string;
  /** The answer, authority and additional counts in tcpdump's format: `1/0/0`. An OPT record is counted. */
  readonly counts: string;
  /** The question's name, with the reply's spelling. */
  readonly question: string;
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  readonly additional: readonly string[];
  readonly size: number;
  readonly text: string;
}

/** Like libc's stub resolver: no EDNS, no AD, one attempt. */
export const plain = ['+noedns', '+noadflag', '+nocookie'] as const;

/** Parses dig's output with the default sections. Records have the form `name ttl IN type data`, with single spaces. */
export function readDig(text: string): Dug {
  const section = (name: string): string[] => {
    const found = new RegExp(`^;; ${name} SECTION:\\n((?:.+\\n)*)`, 'm').exec(text)?.[1] ?? '';
    return found
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.replaceAll(/\s+/g, ' '));
  };
  const counts = /ANSWER: (\d+), AUTHORITY: (\d+), ADDITIONAL: (\d+)/.exec(text);
  return {
    status: /status: ([A-Z]+)/.exec(text)?.[1] ?? '',
    flags: /^;; flags: ([a-z ]*);/m.exec(text)?.[1] ?? '',
    counts: counts === null ? '' : counts.slice(1).join('/'),
    question: (section('QUESTION')[0] ?? '').replace(/^;(\S+).*$/, '$1'),
    answer: section('ANSWER'),
    authority: section('AUTHORITY'),
    additional: section('ADDITIONAL'),
    size: Number(/MSG SIZE\s+rcvd: (\d+)/.exec(text)?.[1] ?? 0),
    text,
  };
}

/** A place where programs can be run, such as a pod. */
export interface Place {
  exec(...words: string[]): string;
}

/** Sends one query from that address. The status is empty if there is no reply. */
export function dig(from: Place, ...words: readonly string[]): Dug {
  // dig exits with code 9 if there is no reply. Here, that is a result and not a failure.
  return readDig(from.exec('sh', '-c', 'dig +time=3 +tries=1 "$@" || true', 'dig', ...words));
}

/** The data of A or AAAA records, sorted. */
export function addresses(dug: Dug): string[] {
  return dug.answer
    .map((line) => line.split(' '))
    .filter((words) => words[3] === 'A' || words[3] === 'AAAA')
    .map((words) => words[4]!)
    .toSorted();
}

/** Returns a reason to skip that lists the missing programs, or null if there are none. */
export function missing(...programs: readonly string[]): string | null {
  const gone = programs.filter(
    (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
  );
  return gone.length === 0 ? null : `not installed: ${gone.join(', ')}`;
}

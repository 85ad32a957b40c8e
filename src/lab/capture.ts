/** What goes over a machine's link, as tcpdump writes it down and shows it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { call } from './programs.ts';

/** One packet of DNS in the words of tcpdump, without length and checksum. */
export interface PacketRow {
  /** Milliseconds since the first packet. */
  readonly atMs: number;
  /** `10.244.1.7.41873`: address and port. */
  readonly from: string;
  readonly to: string;
  /** `A? www.google.com.`, `NXDomain*- 0/1/0`, `Flags [S]`. */
  readonly text: string;
  readonly isQuery: boolean;
  /** Whether it goes from the machine that sent the first packet. */
  readonly isOut: boolean;
}

/** tcpdump says that it listens within a moment; on a busy machine that may be a long one. */
const START_MS = 10_000;

/** A capture that is under way. */
export class Capture {
  readonly file: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, file: string) {
    this.#child = child;
    this.file = file;
  }

  /** @param filter of pcap-filter(7): `port 53` */
  static async start(machine: string, file: string, filter: string): Promise<Capture> {
    const words = ['-i', 'eth0', '-w', file, '-U', '--immediate-mode', '-Z', 'root', filter];
    const child = spawn('nsenter', [`--net=/run/netns/${machine}`, '--', 'tcpdump', ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const signal = AbortSignal.timeout(START_MS);
    let said = '';
    for await (const [chunk] of on(child, signal)) {
      said += String(chunk);
      if (said.includes('listening on')) break;
    }
    child.stderr!.resume();
    return new Capture(child, file);
  }

  /** Ends it; all packets are in the file then. */
  async stop(): Promise<readonly PacketRow[]> {
    // What the kernel has just handed over is still on its way to tcpdump.
    await new Promise((resolve) => setTimeout(resolve, 60));
    this.#child.kill('SIGINT');
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
    return readRows(this.file);
  }
}

async function* on(child: ChildProcess, signal: AbortSignal): AsyncGenerator<[Buffer]> {
  const stream = child.stderr!;
  for (;;) yield (await once(stream, 'data', { signal })) as [Buffer];
}

/** The packets of a file. */
function readRows(file: string): readonly PacketRow[] {
  const { stdout } = call(['tcpdump', '-r', file, '-nn', '-tt']);
  const rows: PacketRow[] = [];
  let first: number | null = null;
  for (const line of stdout.split('\n')) {
    const row = /^(\d+\.\d+) IP6? (\S+) > (\S+): (.*)$/.exec(line);
    if (row === null) continue;
    const [, at = '', from = '', to = '', rest = ''] = row;
    const time = Number(at) * 1000;
    first ??= time;
    const text = plain(rest);
    const isOut = rows.length === 0 || hostOf(from) === hostOf(rows[0]!.from);
    rows.push({ atMs: time - first, from, to, text, isQuery: text.includes('? '), isOut });
  }
  return rows;
}

function hostOf(end: string): string {
  return end.slice(0, end.lastIndexOf('.'));
}

/** Without number and length: what is left says what was asked and what was answered. */
function plain(text: string): string {
  return text
    .replace(/^\d+(?=[+*|%$-]| )/, '')
    .replace(/^[+%$]* /, '')
    .replace(/\[\dau\] /, '')
    .replace(/ \(\d+\)$/, '')
    .trim();
}

/** Bytes of the head of a capture file (pcap-savefile(5)). */
const HEAD = 24;

/** Several captures of one kind of link as one file. */
export function joinCaptures(files: readonly string[], to: string): void {
  const all = files.map((file) => readFileSync(file)).filter(({ length }) => length >= HEAD);
  const [first] = all;
  if (first === undefined) return writeFileSync(to, '');
  writeFileSync(to, Buffer.concat([first, ...all.slice(1).map((bytes) => bytes.subarray(HEAD))]));
}

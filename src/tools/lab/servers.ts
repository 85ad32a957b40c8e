/** Runs DNS servers in a lab's pods: starts them and waits for replies, signals them, and stops them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Problem } from '../../server/base/problem.ts';
import { LAB_FOLDER } from './files.ts';
import { API_URL, type LabPod, type LabPrograms } from './cluster-plan.ts';
import type { MachineProgram, Processes } from './processes.ts';
import { dnsAnswers } from './udp-client.ts';

/** In milliseconds. A server that does not answer by this time is broken. */
const START_MS = 60_000;
/** The number of output lines to quote if a server does not start. */
const LINES = 6;

/** A query that the server must answer before it counts as started. */
export interface Sign {
  /** The client's network namespace. */
  readonly namespace: string;
  readonly server: string;
  readonly name: string;
}

/** @throws Problem with the server's output if it does not answer */
export async function untilAnswering(
  { program, output }: MachineProgram,
  what: string,
  { namespace, server, name }: Sign,
  remedy: string,
): Promise<void> {
  const until = performance.now() + START_MS;
  while (!(await dnsAnswers(namespace, server, name))) {
    if (program.isRunning && performance.now() < until) continue;
    throw new Problem({
      code: 'lab-dns',
      text: `${what} ${program.isRunning ? 'does not answer' : 'has ended'}`,
      hint: output().trim().split('\n').slice(-LINES).join('\n  ') || 'it printed nothing',
      remedy,
    });
  }
}

export class DnsServers {
  /** True if servers run ndots from now on, even if the lab was given another program. */
  byNdots = false;
  readonly #programs: LabPrograms;
  readonly #processes: Processes;

  constructor(programs: LabPrograms, processes: Processes) {
    this.#programs = programs;
    this.#processes = processes;
  }

  /** Starts the server in a pod, and waits until it can resolve `known`. */
  async start(pod: LabPod, corefile: string, namespace: string, known: string): Promise<void> {
    const directory = join(LAB_FOLDER, pod.name);
    mkdirSync(directory, { recursive: true });
    const path = join(directory, 'Corefile');
    writeFileSync(path, corefile.replaceAll('@API@', API_URL));
    const { ndots } = this.#programs;
    const coredns = this.byNdots ? null : this.#programs.coredns;
    const words = coredns === null ? [...ndots, 'serve', '-conf', path] : [coredns, '-conf', path];
    const running = this.#processes.start(pod, words, keyOf(pod));
    await untilAnswering(
      running,
      `the DNS server in ${pod.namespace}/${pod.pod}`,
      { namespace, server: pod.addresses[0] ?? '', name: known },
      coredns === null
        ? 'for details, run ndots serve -conf with this Corefile'
        : 'check the story’s Corefile: this CoreDNS may not support all of it',
    );
  }

  runsIn(pod: LabPod): boolean {
    return this.#processes.find(keyOf(pod))?.program.isRunning === true;
  }

  /** Returns without waiting. */
  signal(pod: LabPod, signal: NodeJS.Signals): void {
    this.#processes.find(keyOf(pod))?.program.signal(signal);
  }

  stop(pod: LabPod, signal: NodeJS.Signals): Promise<void> {
    return this.#processes.stop(keyOf(pod), signal);
  }

  async ended(pod: LabPod): Promise<void> {
    await this.#processes.find(keyOf(pod))?.program.ended;
  }
}

function keyOf({ name }: LabPod): string {
  return `${name}/dns`;
}

/** Starts DNS servers in a lab's pods, and waits for replies. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Problem } from '../../server/base/problem.ts';
import { LAB_DIRECTORY } from './files.ts';
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

/** The key of a pod's DNS server among the lab's processes. */
export function dnsKey({ name }: LabPod): string {
  return `${name}/dns`;
}

/** Starts the server in a pod, and waits until it can resolve `known`. */
export async function startDnsServer(
  processes: Processes,
  { ndots, coredns }: Pick<LabPrograms, 'ndots' | 'coredns'>,
  pod: LabPod,
  corefile: string,
  { namespace, known }: { readonly namespace: string; readonly known: string },
): Promise<void> {
  const directory = join(LAB_DIRECTORY, pod.name);
  mkdirSync(directory, { recursive: true });
  const path = join(directory, 'Corefile');
  writeFileSync(path, corefile.replaceAll('@API@', API_URL));
  const words = coredns === null ? [...ndots, 'serve', '-conf', path] : [coredns, '-conf', path];
  await untilAnswering(
    processes.start(pod, words, dnsKey(pod)),
    `the DNS server in ${pod.namespace}/${pod.pod}`,
    { namespace, server: pod.addresses[0] ?? '', name: known },
    coredns === null
      ? 'for details, run ndots serve -conf with this Corefile'
      : 'check the story’s Corefile: this CoreDNS may not support all of it',
  );
}

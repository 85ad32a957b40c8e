/** Runs `ndots node-cache` in each node's network, as a DaemonSet would. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LAB_DIRECTORY } from './files.ts';
import type { LabNetwork } from './network.ts';
import type { LabPrograms, RuleMode } from './cluster-plan.ts';
import type { MachineProgram, Processes } from './processes.ts';
import { untilAnswering } from './servers.ts';
import { pause } from './pause.ts';

/** The address that a node cache listens on in addition to that of the DNS service. */
const LOCAL_IP: string = '169.254.20.10';

/** Logged by a node cache once it has set up its rules and passed its self-test. */
const READY = /^(?=[^]*Rules for the local addresses are set)(?=[^]*\d answers)/;
/**
 * In milliseconds. Rules that are still missing after this will not appear, because the cache is configured not to
 * create any.
 */
const RULES_MS = 10_000;

export interface NodeCachePlan {
  /** The cache's Corefile template, with `__PILLAR__` variables. */
  readonly corefile: string;
  /** The cluster DNS service's address, which the cache takes over on its node. */
  readonly service: string;
  /** The service address used to query the DNS pods. */
  readonly upstream: string;
  readonly rules: RuleMode;
  readonly flags: readonly string[];
  /** A name that it must resolve before it counts as started. */
  readonly known: string;
}

export class NodeCaches {
  readonly #programs: LabPrograms;
  readonly #processes: Processes;
  readonly #network: LabNetwork;
  #instances = 0;

  constructor(programs: LabPrograms, processes: Processes, network: LabNetwork) {
    this.#programs = programs;
    this.#processes = processes;
    this.#network = network;
  }

  async start(node: string, plan: NodeCachePlan): Promise<void> {
    await this.#untilServing(this.#start(node, plan, keyOf(node)), node, plan);
  }

  /** Starts a second cache that takes over from the current one. Resolves when the old one has exited. */
  async upgrade(node: string, plan: NodeCachePlan): Promise<void> {
    const old = this.#processes.find(keyOf(node));
    const next = `${keyOf(node)} next`;
    const running = this.#start(node, plan, next);
    if (old !== null) {
      // If the new process fails, the old one continues.
      await Promise.race([old.program.ended, running.program.ended]);
    }
    await this.#untilServing(running, node, plan);
    this.#processes.rename(next, keyOf(node));
  }

  /** Returns without waiting. */
  signal(node: string, signal: NodeJS.Signals): void {
    this.#processes.find(keyOf(node))?.program.signal(signal);
  }

  stop(node: string, signal: NodeJS.Signals): Promise<void> {
    return this.#processes.stop(keyOf(node), signal);
  }

  #start(node: string, plan: NodeCachePlan, key: string): MachineProgram {
    const directory = join(LAB_DIRECTORY, node);
    const meeting = join(directory, 'takeover');
    mkdirSync(meeting, { recursive: true });
    const instance = ++this.#instances;
    const [template, corefile] = ['Corefile.base', `Corefile.${instance}`].map((name) =>
      join(directory, name),
    ) as [string, string];
    writeFileSync(template, plan.corefile);
    const words = [
      ...[...this.#programs.ndots, 'node-cache', '-localip', `${LOCAL_IP},${plan.service}`],
      ...['-conf', corefile, '-basecorefile', template, '-upstreamsvc', 'kube-dns-upstream'],
      ...['-takeover', meeting, '-rules', plan.rules, ...plan.flags],
    ];
    const env = { KUBE_DNS_UPSTREAM_SERVICE_HOST: plan.upstream };
    return this.#processes.start({ name: node, files: {} }, words, key, env);
  }

  async #untilServing(
    running: MachineProgram,
    node: string,
    { known }: NodeCachePlan,
  ): Promise<void> {
    const sign = { namespace: this.#network.path(node), server: LOCAL_IP, name: known };
    const remedy = 'for details, run ndots node-cache with this Corefile';
    await untilAnswering(running, `the node cache on ${node}`, sign, remedy);
    // The rules come last, because they make pods reach the cache.
    const until = performance.now() + RULES_MS;
    while (!READY.test(running.output()) && running.program.isRunning && performance.now() < until)
      await pause(20);
  }
}

function keyOf(node: string): string {
  return `${node}/node-cache`;
}

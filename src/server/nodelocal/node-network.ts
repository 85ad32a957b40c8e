/** A node cache's network, which means its interface and its rules, maintained until the end. */
import type { Log } from '../base/log.ts';
import { Problem } from '../base/problem.ts';
import { SystemError } from '../runtime/libc.ts';
import { TeardownPipe, TeardownShell, type Teardown } from './teardown-shell.ts';
import { checkInterfaces, LocalInterface } from './local-interface.ts';
import { RuleFailure, type RuleSet } from './packet-rules.ts';

/** Kinds of error, used as values of the label `errortype`. */
export const setupErrors = [
  'iptables',
  'iptables_lock',
  'interface_add',
  'interface_check',
  'configmap',
] as const;

export type SetupError = (typeof setupErrors)[number];

export interface NodeNetworkParts {
  /** Null if another program sets up the interface. */
  readonly localInterface: LocalInterface | null;
  /** Empty if another program sets up the rules. */
  readonly rules: readonly RuleSet[];
  /** The shell that cleans up after us, or null if there is none or nothing to clean up. */
  readonly shell: string | null;
  /** A named pipe to a shell in another container, which is used instead of a local shell. Null if there is none. */
  readonly pipe: string | null;
  /** True to leave the interface and rules in place at the end. */
  readonly skipTeardown: boolean;
  readonly log: Log;
  readonly onError: (kind: SetupError) => void;
  /** Called for parts that other programs had removed and that have been restored. */
  readonly onRepair: (what: 'interface' | 'rules') => void;
}

/**
 * Sets up the network, repairs it, and withdraws it. Failures after startup are counted and logged, but are never
 * fatal.
 */
export class NodeNetwork {
  readonly #parts: NodeNetworkParts;
  readonly #teardown: Teardown | null;
  #rulesWanted = false;
  /** Only one call at a time maintains the rules. */
  #busy: Promise<void> | null = null;
  /** The last logged failure, by subject. */
  #reported = new Map<string, string>();
  #over = false;

  constructor(parts: NodeNetworkParts) {
    this.#parts = parts;
    const { localInterface, rules, shell, pipe } = parts;
    const lines = (): readonly string[] => [
      ...rules.flatMap(({ removal }) => removal),
      ...(localInterface?.removal ?? []),
    ];
    this.#teardown =
      shell === null
        ? null
        : pipe === null
          ? new TeardownShell(shell, lines)
          : new TeardownPipe(pipe, lines);
  }

  /**
   * Sets up the interface before anything can listen on its addresses.
   * @throws Problem
   */
  setUpInterface(): void {
    const { localInterface, log } = this.#parts;
    if (localInterface === null) return;
    checkInterfaces();
    try {
      const [name] = localInterface.ensure(true);
      if (name !== undefined) log.info(`Added interface - ${name}`);
    } catch (error) {
      this.#parts.onError('interface_add');
      throw problemOf(error);
    }
    this.#teardown?.ensure();
  }

  /**
   * Sets up the rules, now that there is something to answer.
   * @throws Problem
   */
  async setUpRules(): Promise<void> {
    const { rules, log } = this.#parts;
    if (rules.length === 0) return;
    for (const set of rules) {
      try {
        const { missing } = await set.ensure();
        log.info(
          `Rules for the local addresses are set by ${set.name}${missing === 0 ? ' already' : ''}`,
        );
      } catch (error) {
        this.#parts.onError(
          error instanceof RuleFailure && error.locked ? 'iptables_lock' : 'iptables',
        );
        if (error instanceof RuleFailure && error.locked)
          log.error(`${error.message}; will be retried`);
        else throw problemOf(error);
      }
    }
    this.#rulesWanted = true;
    this.#teardown?.ensure();
  }

  /** Restores what other programs removed, and renews leases. */
  look(): void {
    if (this.#over) return;
    this.#teardown?.ensure();
    this.#lookAtInterface();
    if (this.#rulesWanted) this.#busy ??= this.#lookAtRules().finally(() => (this.#busy = null));
  }

  #lookAtInterface(): void {
    const { localInterface, onError, onRepair, log } = this.#parts;
    if (localInterface === null) return;
    try {
      const missing = localInterface.ensure();
      if (missing.length > 0) {
        onRepair('interface');
        log.warning(`${missing.join(', ')} was removed from the interface and added again`);
      }
      this.#reported.delete('interface');
    } catch (error) {
      onError('interface_check');
      this.#reportOnce('interface', `Error checking the interface - ${textOf(error)}`);
    }
  }

  async #lookAtRules(): Promise<void> {
    const { rules, onError, onRepair, log } = this.#parts;
    for (const set of rules) {
      try {
        const { missing } = await set.ensure();
        if (missing > 0) {
          onRepair('rules');
          log.warning(`Added back nodelocaldns rules: ${missing} of ${set.name} had been removed`);
        }
        this.#reported.delete(set.name);
      } catch (error) {
        onError(error instanceof RuleFailure && error.locked ? 'iptables_lock' : 'iptables');
        this.#reportOnce(set.name, `Error checking/adding rules - ${textOf(error)}`);
      }
    }
  }

  #reportOnce(about: string, text: string): void {
    if (this.#reported.get(about) === text) return;
    this.#reported.set(about, text);
    this.#parts.log.error(text);
  }

  /**
   * The first half of shutdown. New queries go to the cluster's service, while those in progress are still answered.
   */
  async withdraw(): Promise<void> {
    this.#over = true;
    await this.#busy;
    const { rules, skipTeardown, log } = this.#parts;
    if (skipTeardown) {
      for (const set of rules) set.leave();
      return;
    }
    if (rules.length > 0) log.info('Tearing down');
    await this.#each((set) => set.divert());
  }

  async #each(take: (set: RuleSet) => Promise<void>): Promise<void> {
    for (const set of this.#parts.rules) {
      try {
        await take(set);
      } catch (error) {
        this.#parts.onError('iptables');
        this.#parts.log.error(`Failed deleting rules - ${textOf(error)}`);
      }
    }
  }

  /** Second half, when nothing listens any more. */
  async tearDown(): Promise<void> {
    const { localInterface, skipTeardown, log } = this.#parts;
    if (this.#rulesWanted && !skipTeardown) await this.#each((set) => set.remove());
    try {
      if (skipTeardown) localInterface?.leave();
      else localInterface?.remove();
    } catch (error) {
      log.error(`Failed removing the interface - ${textOf(error)}`);
    }
    this.#teardown?.release();
  }

  /** Leaves everything to another instance that takes over. */
  async handOver(): Promise<void> {
    this.#over = true;
    await this.#busy;
    this.#teardown?.release();
    for (const set of this.#parts.rules) set.leave();
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the reason why the network cannot be set up, as a problem. */
function problemOf(error: unknown): unknown {
  if (error instanceof Problem) return error;
  if (error instanceof SystemError && (error.code === 'EPERM' || error.code === 'EACCES'))
    return notAllowed(error.message);
  if (error instanceof SystemError)
    return new Problem({ code: 'interface-failed', text: error.message, cause: error });
  if (!(error instanceof RuleFailure)) return error;
  if (/permission denied|operation not permitted|must be root/i.test(error.message))
    return notAllowed(error.message);
  return new Problem({
    code: 'rules-failed',
    text: error.message,
    remedy:
      'Run the command manually to see more, or set the rules up by other means: -setupiptables=false',
    cause: error,
  });
}

function notAllowed(text: string): Problem {
  return new Problem({
    code: 'network-not-allowed',
    text: `no permission to change this machine’s network: ${text}`,
    hint: 'It needs root, or the NET_ADMIN and NET_RAW capabilities, and hostNetwork: true in a pod.',
    remedy: 'To serve without network setup: -setupinterface=false -setupiptables=false',
  });
}

/** A rule of the linter that has to ask the network: nothing of it runs without `--live`. */
import type { LintRule, Tell, Told } from '../lint-rule.ts';
import type { Subject } from '../subject.ts';
import type { AskingContext } from '../../probe/probe-queries.ts';
import type { ProbeContext } from '../../probe/check.ts';
import type { ProbeServer } from '../../probe/network.ts';

/** The network and files, for live rules. */
export interface LiveWorld {
  readonly asking: AskingContext & Pick<ProbeContext, 'random'>;
  /** The servers of this machine, which answer for search domains without servers. */
  readonly resolvers: readonly ProbeServer[];
  /** True if the word of a configuration is a local file. */
  isFile(path: string): boolean;
  /**
   * Addresses of a host; empty if it does not exist.
   * @throws if that cannot be determined
   */
  resolve(host: string): Promise<readonly string[]>;
  /**
   * Verifies the certificate of a server for this name.
   * @param ca files of CAs; empty: those of the system
   * @returns the reason of a failure; null: valid
   */
  certificate(server: ProbeServer, name: string, ca: readonly string[]): Promise<string | null>;
}

/** A rule that queries the network. Without --live it finds nothing. */
export interface LiveRule extends LintRule {
  /** Examines the input and the network. It does not reject on network failures. */
  ask(subject: Subject, world: LiveWorld, tell: Tell): Promise<void>;
}

export function liveRule(
  head: Pick<LintRule, 'code' | 'severity' | 'summary'> & Pick<LiveRule, 'ask'>,
): LiveRule {
  return { ...head, find: () => undefined };
}

/** Runs the live rules and returns their findings. */
export async function askLive(
  rules: readonly LiveRule[],
  subject: Subject,
  world: LiveWorld,
): Promise<readonly (readonly [LintRule, Told])[]> {
  const found = await Promise.all(
    rules.map(async (rule) => {
      const told: Told[] = [];
      await rule.ask(subject, world, (each) => told.push(each));
      return told.map((each) => [rule, each] as const);
    }),
  );
  return found.flat();
}

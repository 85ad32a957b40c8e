/** A linter rule that has to query the network. It does nothing without `--live`. */
import type { LintRule, Tell, Told } from '../lint-rule.ts';
import type { Subject } from '../subject.ts';
import type { AskingContext } from '../../probe/probe-queries.ts';
import type { ProbeContext } from '../../probe/check.ts';
import type { ProbeServer } from '../../probe/network.ts';

/** The network and files, for live rules. */
export interface LiveWorld {
  readonly asking: AskingContext & Pick<ProbeContext, 'random'>;
  /** This machine's servers, which are used for search domains that have no servers. */
  readonly resolvers: readonly ProbeServer[];
  /** True if this word in a configuration is a local file. */
  isFile(path: string): boolean;
  /**
   * A host's addresses. Empty if it does not exist.
   * @throws if that cannot be determined
   */
  resolve(host: string): Promise<readonly string[]>;
  /**
   * Verifies a server's certificate for this name.
   * @param ca CA files; empty to use the system's
   * @returns why it is not valid, or null if it is
   */
  certificate(server: ProbeServer, name: string, ca: readonly string[]): Promise<string | null>;
}

/** A rule that queries the network. Without --live, it finds nothing. */
export interface LiveRule extends LintRule {
  /** Examines the input and the network. Does not reject because of network failures. */
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

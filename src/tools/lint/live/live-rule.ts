/** A rule of the linter that has to ask the network: nothing of it runs without `--live`. */
import type { LintRule, Tell, Told } from '../lint-rule.ts';
import type { Subject } from '../subject.ts';
import type { AskingContext } from '../../probe/probe-queries.ts';
import type { ProbeContext } from '../../probe/check.ts';
import type { ProbeServer } from '../../probe/network.ts';

/** What such rules may do to the world. */
export interface LiveWorld {
  readonly asking: AskingContext & Pick<ProbeContext, 'random'>;
  /**
   * The servers of this machine, which are asked about search domains that come without servers.
   */
  readonly resolvers: readonly ProbeServer[];
  /** Whether a word of a configuration names a file here. */
  isFile(path: string): boolean;
  /** Addresses of a host; none: there is no such host. Rejects if that cannot be found out. */
  resolve(host: string): Promise<readonly string[]>;
  /**
   * Whether a server shows a certificate for this name that can be verified; why not, if it does
   * not; null: it does.
   * @param ca files with authorities; empty: those of the system
   */
  certificate(server: ProbeServer, name: string, ca: readonly string[]): Promise<string | null>;
}

/** A rule that asks. To the linter it is one that finds nothing by itself. */
export interface LiveRule extends LintRule {
  /**
   * Looks at everything that was read, and at what is there. Never rejects for what a network may
   * do.
   */
  ask(subject: Subject, world: LiveWorld, tell: Tell): Promise<void>;
}

export function liveRule(
  head: Pick<LintRule, 'code' | 'severity' | 'summary'> & Pick<LiveRule, 'ask'>,
): LiveRule {
  return { ...head, find: () => undefined };
}

/** What the rules found. */
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

/**
 * Explains why one client resolves a reporting host while another does not. Runs the client models on this pod's files
 * without sending anything.
 */
import { emptyScript } from '../../resolver/answers-file.ts';
import type { Settings } from '../../resolver/client.ts';
import { findClient } from '../../resolver/clients.ts';
import { planOnce } from '../../resolver/run-lookup.ts';

/** Time limit for a lookup, in milliseconds of virtual time. */
const LIMIT_MS = 120_000;

/** The clients that matter in checker pods, by their familiar names. */
const asked = [
  ['go', {}, 'Go without cgo (CGO_ENABLED=0, most checker images)'],
  ['go', { CGO_ENABLED: '1' }, 'Go with cgo'],
  ['glibc', {}, 'glibc (ping, curl)'],
  ['musl', {}, 'musl (Alpine)'],
] as const;

/**
 * Returns one line per client and one with advice. Servers are assumed to answer NXDOMAIN, as for nonexistent names and
 * those under localhost.
 * @param settings this pod's files and environment
 */
export async function explainHost(name: string, settings: Settings): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const [label, env, title] of asked) {
    const own = { ...settings, env: { ...settings.env, ...env } };
    const plan = { client: findClient(label)!, name, settings: own, limitMs: LIMIT_MS };
    const { results, trace } = await planOnce(plan, emptyScript);
    const { addresses, failure } = results[0]!.found;
    const queries = trace.exchanges.length;
    const how = queries === 0 ? 'without asking a server' : `after ${queries} queries`;
    lines.push(
      failure === null
        ? `${title}: ${addresses.join(' ')}, ${how}`
        : `${title}: ${failure.text} (${failure.code}), ${how}`,
    );
  }
  return lines;
}

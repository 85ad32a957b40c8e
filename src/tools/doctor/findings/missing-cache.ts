/** DNS servers that query their upstream again for each client query, because they do not cache. */
import type { Observations } from '../observe/observations.ts';
import { isFailure, wrong } from '../observe/outcomes.ts';
import { isForwarder } from '../observe/roles.ts';
import {
  busiestFor,
  busiestText,
  repeatingClients,
  repeatingText,
  serversWithoutAnswers,
} from '../observe/repeating-clients.ts';
import { listed } from '../texts.ts';
import { FELT_SHARE, MIN_MEASURED_QUERIES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** A server forwards queries for a name again and again while an earlier answer is still valid. */
export const missingCache: FindingKind = {
  code: 'ND4073',
  title: 'A DNS server does not cache, so every query for a name goes to its upstream',
  name: 'a DNS server without a cache',
  inCapture(observed) {
    const { total, servers, seconds } = observed;
    if (total.asked < MIN_MEASURED_QUERIES) return unknown('too few queries');
    const repeating = servers.list.flatMap(({ address }) =>
      repeatingClients(observed, address).filter(({ isServer }) => isServer),
    );
    const forwarding = new Set(repeating.map(({ client }) => client));
    const failing = serversWithoutAnswers(observed).filter(
      ({ server }) => forwarding.size === 0 || forwarding.has(server),
    );
    if (repeating.length + failing.length === 0)
      return excluded('no server queries its upstream again while an answer is valid');
    const found = [...repeating, ...failing];
    const names = [...new Set(found.flatMap((each) => each.names))];
    const own = new Set(names);
    const without = [...new Set([...forwarding, ...failing.map(({ server }) => server)])];
    const busiest = busiestFor(observed, names);
    const [name] = names as [string];
    // A program that queries the upstream itself looks like a DNS server whose clients are not in the capture.
    const mayBeProgram =
      failing.length === 0 && !repeating.some(({ client }) => isForwarder(observed, client));
    return {
      title: mayBeProgram
        ? 'A client of an upstream does not cache, so every query for a name goes there'
        : this.title,
      severity:
        failing.length > 0 || isFelt(observed, own)
          ? 'critical'
          : mayBeProgram
            ? 'info'
            : 'warning',
      confidence: mayBeProgram ? 0.6 : repeating.length > 0 ? 0.86 : 0.82,
      seen: [
        ...repeating.map(repeatingText),
        ...failing.map(
          ({ server, failed, answered, ttl, names: theirs }) =>
            `All ${answered} answers from ${server} had the full TTL (${ttl} s), and none had a lower one, as cached answers have. While an answer was valid, ${failed} queries for the same names failed after a wait: ${listed(theirs)}`,
        ),
        busiest !== null && busiestText(busiest, seconds),
      ],
      why: `${listed(without)} does not cache these names: the cache plugin is missing in its server block, or is disabled for them.${mayBeProgram ? ' Or it is a program that queries this upstream instead of the DNS pods.' : ''} Every client query waits for the upstream, although an earlier answer is still valid. The upstream gets many times the necessary load, may limit or drop it, and each of its failures reaches the clients.`,
      fix: [
        'Add cache 30 to the server block in the Corefile, or correct it (zones, disable). ndots lint reports a forward without cache.',
        busiest === null
          ? 'Make programs keep connections open, so that they look up names less often.'
          : `Make ${busiest.address} keep connections open or cache addresses, so that it looks up names less often.`,
        'Use a cache on the node (ndots node-cache, NodeLocal DNSCache).',
      ],
      prove: `run ndots query ${name} @${without[0]!} twice; the TTL is the full one both times, and the second reply takes as long`,
      disproved: 'the TTL of the second reply is lower',
      exchanges: observed.affectedExchanges((each) => isFailure(each) && own.has(each.name)),
      affected: without,
    };
  },
};

/** True if programs notice that queries for these names fail. */
function isFelt({ names }: Observations, own: ReadonlySet<string>): boolean {
  const all = names.list.filter(({ name }) => own.has(name));
  const asked = all.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
  const failed = all.reduce((sum, { outcomes }) => sum + wrong(outcomes), 0);
  return failed > 0 && failed >= FELT_SHARE * asked;
}

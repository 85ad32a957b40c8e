/** Addresses that a resolver takes out of answers: protection against DNS rebinding. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isPrivate } from '../observe/private-address.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** NOERROR without an address and without a SOA record, where the AAAA denial has one. */
export const strippedAnswers: FindingKind = {
  code: 'ND4042',
  title: 'A resolver removes private addresses from answers (DNS rebinding protection)',
  name: 'answers without their addresses',
  inCapture({ names, replyFaults }, claims) {
    if (replyFaults.read === 0) return unknown('the capture has no whole reply');
    const bare = (replyFaults.kinds.get('bare')?.names.list ?? []).filter(
      ({ type, name, count }) => type === TYPE.A && count >= MIN_CASES && !claims.names.has(name),
    );
    const found = bare.flatMap(({ name }) => {
      const sets = names.get(name, TYPE.A)?.sets?.list ?? [];
      const isElsewhere =
        sets.length > 0 && sets.every(({ addresses }) => addresses.every(isPrivate));
      const sixth = names.get(name, TYPE.AAAA)?.outcomes;
      const isDenied =
        sets.length === 0 &&
        sixth !== undefined &&
        sixth.nodata > 0 &&
        sixth.found === 0 &&
        replyFaults.zones.get(name) !== undefined;
      return isElsewhere || isDenied ? [{ name, sets }] : [];
    });
    const [first] = found.toSorted((one, other) => other.sets.length - one.sets.length);
    if (first === undefined) return excluded('no answer has had its addresses removed');
    const list = [...new Set(found.map(({ name }) => name))];
    for (const name of list) claims.names.add(name);
    const [set] = first.sets;
    const kind = replyFaults.kinds.get('bare');
    const servers = kind?.servers.list.map(({ key }) => key) ?? [];
    return {
      severity: 'critical',
      confidence: set === undefined ? 0.8 : 0.95,
      seen: [
        sentence(
          `${listed(servers)} ${servers.length === 1 ? 'answers' : 'answer'} NOERROR for A, with neither an address nor a SOA record, while the denial of AAAA has one: ${listed(list)}`,
        ),
        set !== undefined &&
          `When it is queried directly, ${set.asked} returns ${set.addresses.join(' ')} for ${first.name} (a private address).`,
      ],
      why: 'A server without a record denies it with an SOA record, so if an empty answer lacks it, its addresses were removed. Resolvers with DNS rebinding protection (stop-dns-rebind in dnsmasq, private-address in Unbound, home routers) remove private addresses.',
      fix: [
        'Exempt the zone at that resolver (rebind-domain-ok=/ZONE/ in dnsmasq, private-domain in Unbound).',
        'Or forward the zone directly to the server that has it, in its own server block.',
      ],
      prove: `run ndots query ${first.name} @${servers[0] ?? 'SERVER'}, then again ${set === undefined ? 'at one of the zone’s servers' : `with @${set.asked}`}`,
      disproved: 'the zone’s servers also have no address for the name',
      exchanges: kind?.samples.filter(({ name }) => list.includes(name)) ?? [],
    };
  },
};

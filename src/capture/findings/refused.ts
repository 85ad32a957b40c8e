import { excluded, listed, sentence, share, unknown, type Rule } from './finding.ts';

/** REFUSED: the server is there, and does not want to answer. */
export const refused: Rule = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  check(observed, claims) {
    const { asked } = observed.total;
    if (asked === 0) return unknown('no query was seen');
    const names = observed.names.list
      .filter(({ name, outcomes }) => outcomes.refused > 0 && !claims.names.has(name))
      .toSorted((one, other) => other.outcomes.refused - one.outcomes.refused);
    const count = names.reduce((sum, { outcomes }) => sum + outcomes.refused, 0);
    if (count < 5 || count < 0.02 * asked) return excluded('REFUSED is rare');
    const clients = observed.clients.list.filter(({ outcomes }) => outcomes.refused > 0);
    const barred = clients.filter(({ outcomes }) => outcomes.refused >= 0.9 * outcomes.asked);
    // Others are answered what these are refused: it depends on who asks.
    const byClient =
      barred.length === clients.length && clients.length < observed.clients.size && count >= 5;
    const [worst] = observed.servers.list.toSorted(
      (one, other) => other.outcomes.refused - one.outcomes.refused,
    );
    const server = worst?.address ?? 'the server';
    return {
      code: this.code,
      title: this.title,
      severity: byClient || count >= 0.1 * asked ? 'critical' : 'warning',
      confidence: byClient ? 0.92 : 0.8,
      seen: [
        sentence(
          `${share(count, asked)} queries were REFUSED, most by ${server} (${worst?.outcomes.refused ?? 0}): ${listed([...new Set(names.map(({ name }) => name))])}`,
        ),
        byClient
          ? `It depends on who asks: ${listed(barred.map(({ address }) => address))} ${barred.length === 1 ? 'is' : 'are'} refused whatever they ask, others are answered.`
          : `${listed(clients.map(({ address }) => address))} got it; other queries of theirs are answered.`,
      ],
      why: byClient
        ? 'The server has a rule about who may ask: acl in a Corefile, allow-query or access-control of other servers. Which address a packet has when it arrives (the pod’s or, after masquerading, the node’s) decides.'
        : 'The server is not responsible for these names and does not ask anybody else: no server block, forward or zone fits them. Or its limit on queries that wait is reached (max_concurrent of forward).',
      fix: byClient
        ? [
            'acl of the Corefile (or what stands for it upstream): let the nets of the pods ask.',
            'If only some nodes are hit: compare the addresses that packets have when they arrive (masquerading).',
          ]
        : [
            'A server block for these names, or forward to one that knows them.',
            'forward { max_concurrent } higher, if the server’s log says that it was reached.',
          ],
      prove: `ndots query ${names[0]!.name} @${server} from such a pod: an Extended DNS Error may say why`,
      disproved: byClient
        ? 'the same client is answered for another name'
        : 'another client is answered for the same name',
      exchanges: observed.affected.flatMap((lookup) =>
        lookup.exchanges.filter(({ rcode }) => rcode === 5),
      ),
    };
  },
};

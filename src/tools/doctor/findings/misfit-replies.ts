/** Replies that come to the right socket with the wrong id, question or flag. */
import type { Misfit } from '../../capture/pair/seen-exchange.ts';
import { excluded, type FindingKind } from './finding.ts';
import { listed, sentence, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

const saids: Readonly<
  Record<Misfit, { readonly what: string; readonly why: string; readonly fix: string }>
> = {
  id: {
    what: 'have a different id from the query',
    why: 'A proxy or load balancer gives each query a new id on the way to the server and does not restore the old one. Or it sends one client the reply to another client’s query.',
    fix: 'translates ids. Exclude DNS from it, or update it',
  },
  question: {
    what: 'have the query’s id but a different question',
    why: 'Something in transit changes the question: a rewrite that is not reversed in the reply (in CoreDNS, the reply’s question has to be the client’s), a proxy that appends a domain, or a server that mixes up queries on one socket.',
    fix: 'changes questions. Make it restore the client’s question in the reply',
  },
  flag: {
    what: 'do not have the QR flag, so that they look like queries',
    why: 'The server or a proxy sends the query back instead of a reply, or writes a wrong header: an echo service, a loop that returns to the client, a broken implementation.',
    fix: 'sends messages without QR. Something other than a DNS server may be listening there',
  },
};

/** Each query is answered, and the client cannot use any of the replies. */
export const misfitReplies: FindingKind = {
  code: 'ND3039',
  title: 'Replies do not fit their queries (id, question or QR flag), and are ignored',
  name: 'replies that do not fit their queries',
  inCapture(observed, claims) {
    const all = claims.open.filter(({ misfit }) => (misfit ?? null) !== null);
    if (all.length < MIN_CASES)
      return excluded('replies have the id and the question of their queries');
    const [[misfit, losses]] = [...Map.groupBy(all, (each) => each.misfit!)].toSorted(
      ([, one], [, other]) => other.length - one.length,
    ) as [[Misfit, typeof all]];
    claims.take(all);
    const servers = [...new Set(losses.map(({ server }) => server.address))];
    const clients = [...new Set(losses.map(({ client }) => client.address))];
    const names = [...new Set(losses.map(({ name }) => name))];
    const { what, why, fix } = saids[misfit];
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.93,
      seen: [
        `${share(all.length, observed.total.asked)} queries got a reply that does not fit; ${losses.length} of these replies ${what}.`,
        sentence(`They come from ${listed(servers)} to ${listed(clients)}, for ${listed(names)}`),
      ],
      why: `${why} A client accepts a reply only if its id and question match the query (RFC 5452 section 9), because it could otherwise be forged. It ignores this one and waits until it times out.`,
      fix: [`Find what sits between the clients and ${listed(servers)} and ${fix}.`],
      prove: `ndots query ${names[0]!} @${servers[0]!} shows what does not fit; compare with a capture next to the server`,
      disproved:
        'the same replies fit where the server sends them (so something in transit changes them)',
      exchanges: all,
    };
  },
};

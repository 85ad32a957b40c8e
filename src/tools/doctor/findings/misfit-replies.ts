/** Replies that reach the right socket with the wrong id, question or flag. */
import type { Misfit } from '../../capture/pair/seen-exchange.ts';
import { excluded, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

const saids: Readonly<Record<Misfit, Record<'what' | 'why' | 'fix', string>>> = {
  id: {
    what: 'have a different id from the query',
    why: 'A proxy or load balancer gives each query a new id on the way to the server and does not restore the old one. Or it sends one client the reply to another client’s query.',
    fix: 'translates ids. Exclude DNS from it, or update it',
  },
  question: {
    what: 'have the query’s id but a different question',
    why: 'Something in transit changes the question. It may be a rewrite that is not reversed in the reply, a proxy that appends a domain, or a server that mixes up queries on one socket.',
    fix: 'changes questions. Make it restore the client’s question in the reply',
  },
  flag: {
    what: 'lack the QR flag, so they look like queries',
    why: 'The server or a proxy sends the query back instead of a reply, or writes a wrong header. It may be an echo service, a loop that returns to the client, or a broken implementation.',
    fix: 'sends messages without QR. Something other than a DNS server may be listening there',
  },
};

export const misfitReplies: FindingKind = {
  code: 'ND3039',
  title: 'Clients ignore replies whose id, question or QR flag does not match the query',
  name: 'replies that do not match their queries',
  inCapture(observed, claims) {
    const all = claims.open.filter(({ misfit }) => (misfit ?? null) !== null);
    if (all.length < MIN_CASES)
      return excluded('replies match the id and question of their queries');
    const [[misfit, losses]] = [...Map.groupBy(all, (each) => each.misfit!)].toSorted(
      ([, one], [, other]) => other.length - one.length,
    ) as [[Misfit, typeof all]];
    claims.take(all);
    const servers = [...new Set(losses.map(({ server }) => server.address))];
    const clients = [...new Set(losses.map(({ client }) => client.address))];
    const names = [...new Set(losses.map(({ name }) => name))];
    const { what, why, fix } = saids[misfit];
    return {
      severity: 'critical',
      confidence: 0.93,
      seen: [
        `${share(all.length, observed.total.asked)} queries got a reply that does not match them. ${losses.length} of these replies ${what}.`,
        `They were sent by ${listed(servers)} to ${listed(clients)} for ${listed(names)}`,
      ],
      why: `${why} A client accepts a reply only if its id and question match the query (RFC 5452, section 9), because it could otherwise be forged. It ignores any other reply and waits until it times out.`,
      fix: [`Find what sits between the clients and ${listed(servers)} and ${fix}.`],
      prove: `ndots query ${names[0]!} @${servers[0]!} shows which part differs; compare with a capture next to the server`,
      disproved:
        'the replies match when they leave the server (then something in transit changes them)',
      exchanges: all,
    };
  },
};

/** Loss that nothing explains. */
import type { Observations } from '../evidence/observations.ts';
import { sentSpan, type SeenExchange } from '../exchanges/seen-exchange.ts';
import {
  clock,
  excluded,
  listed,
  share,
  took,
  unknown,
  type Claims,
  type Rule,
} from './finding.ts';
import { firstTries } from './losses.ts';

/** A smaller share of what is asked is no trouble. */
const RARE = 0.002;
/** What is felt. */
const MUCH = 0.01;
/** What is lost within this time is of one moment, milliseconds. */
const MOMENT_MS = 1000;
/** A good time before the first loss is worth a word. */
const HALF = 0.5;
/** No more than so much of what is explained is its rest, so close to it, milliseconds. */
const REST = 0.3;
const AROUND_MS = 1500;

/** Queries are lost, and nothing that was looked at decides which. */
export const randomLoss: Rule = {
  code: 'ND3013',
  title: 'Queries or replies are lost, without a pattern in who, what and when',
  name: 'loss without a pattern',
  check(observed, claims) {
    const losses = firstTries(claims.open);
    if (observed.total.asked < 5) return unknown('too few queries');
    if (losses.length < 3 || losses.length < RARE * askedMeanwhile(observed, losses))
      return excluded(lossText(observed, claims));
    if (isRest(claims)) {
      claims.take(claims.open);
      return excluded('what is lost besides is of the moments of what is explained');
    }
    const whole = claims.open;
    const meanwhile = askedMeanwhile(observed, losses);
    const { fromMs, toMs } = sentSpan(whole);
    const isMoment = toMs - fromMs <= MOMENT_MS;
    // What was a moment is over.
    const isMuch = losses.length >= MUCH * (isMoment ? observed.total.asked : meanwhile);
    const servers = [...new Set(losses.map(({ server }) => server.address))];
    const clients = new Set(losses.map(({ client }) => client.address));
    const behind = losses.filter(({ hops }) => hops.length > 0);
    const beyond = behind.filter(({ hops }) => hops.every(({ repliedMs }) => repliedMs === null));
    return {
      code: this.code,
      title: this.title,
      severity: isMuch ? 'critical' : 'warning',
      confidence: 0.6,
      seen: [
        `${share(losses.length, observed.total.asked)} queries got no reply: of ${clients.size} ${clients.size === 1 ? 'client' : 'clients'}, to ${listed(servers)}.${meanwhile < HALF * observed.total.asked ? ` From ${clock(sentSpan(whole).fromMs)} on it is ${share(losses.length, meanwhile)}.` : ''}`,
        isMoment
          ? `All of them were sent within ${took(toMs - fromMs)}, and others of that moment were answered.`
          : 'Nothing that was looked at (types, names, ports, pairs, moments) tells them from the others.',
        ...(behind.length > 0
          ? [
              `${share(beyond.length, behind.length)} of those that were followed to a DNS pod were not answered there; of the rest the reply was lost on its way back.`,
            ]
          : []),
      ],
      why: 'A link, a network card or a machine on the way drops packets: congestion, errors, a queue that is too short; or two flows were given the same port when their addresses were translated (masquerading without --random-fully).',
      fix: [
        'Find the stretch: capture at the client, on its node and at the server at once, and join them.',
        'If the address stands for several pods and as large a share is lost as one of them has, ask each endpoint: a client that takes a new port for each query (Go) sees a dead one as loss without a pattern.',
        'Compare ip -s link (drops, errors) of the nodes, and conntrack -S (insert_failed, drop).',
      ],
      prove: 'ndots capture join client.pcap node.pcap server.pcap',
      disproved:
        'the losses turn out to have one name, one client, one node or one moment in common',
      exchanges: whole,
    };
  },
};

/** How little is lost, or that it is known why. */
function lossText({ total }: Observations, { explained }: Claims): string {
  if (explained.length === 0 || total.lost < RARE * total.asked)
    return '(nearly) all queries are answered';
  return `${share(total.lost, total.asked)} queries got no reply, and the findings explain it`;
}

/** What was asked from the first of these on: what was well before says nothing of them. */
function askedMeanwhile({ ways }: Observations, losses: readonly SeenExchange[]): number {
  const { fromMs } = sentSpan(losses);
  const { inside, outside } = ways.between(fromMs, Infinity);
  return inside.asked + outside.asked;
}

/**
 * Whether it is but the rest of something that is known: fewer by far, for the same names or at the
 * same servers, at the same time.
 */
function isRest({ open, explained, names: known }: Claims): boolean {
  if (open.length > REST * explained.length) return false;
  const names = new Set(explained.map(({ name }) => name));
  // What is known to fail by its name says nothing of other names at the same server.
  const servers = new Set(
    explained.filter(({ name }) => !known.has(name)).map(({ server }) => server.address),
  );
  const times = explained.map(({ sentMs }) => sentMs);
  const fromMs = times.reduce((least, ms) => Math.min(least, ms), Infinity) - AROUND_MS;
  const toMs = times.reduce((most, ms) => Math.max(most, ms), -Infinity) + AROUND_MS;
  return open.every(
    ({ name, server, sentMs }) =>
      sentMs >= fromMs && sentMs <= toMs && (names.has(name) || servers.has(server.address)),
  );
}

/** Waits until the cluster's DNS answers through the cache, before the node's queries are sent to the cache. */
import { createSocket } from 'node:dgram';
import { sleep, type Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { FLAG, RCODE } from '../wire/iana.ts';
import { parseName } from '../wire/name.ts';
import { makeQueryMessage, QueryMessage } from '../wire/query-message.ts';

/** The period of the queries, milliseconds. */
const PERIOD_MS = 250;
/** Milliseconds without an answer after which the cache receives the node's queries anyway. */
const LIMIT_MS = 15_000;

export interface FirstAnswerParts {
  /** Of the cache. */
  readonly address: string;
  readonly port: number;
  /** Of the cluster: `cluster.local.` */
  readonly zone: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Queries names in the zone until one is answered. On a new node, or in a new installation, kube-proxy may not have set
 * the rules for the Service that the cache queries. The pods still query the cluster's own Service during that time.
 */
export async function firstAnswer({
  address,
  port,
  zone,
  clock,
  log,
}: FirstAnswerParts): Promise<void> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('error', () => undefined);
  let isAnswered = false;
  socket.on('message', (reply) => {
    const rcode = (reply[3] ?? RCODE.SERVFAIL) & FLAG.RCODE;
    isAnswered ||= rcode !== RCODE.SERVFAIL && rcode !== RCODE.REFUSED;
  });
  const began = clock.now();
  let asked = 0;
  while (!isAnswered && clock.now() - began < LIMIT_MS) {
    if (asked === 8)
      log.info(`waiting for an answer for ${zone} before accepting the node's queries`);
    // A new name each time: failures are cached.
    const name = parseName(`first-answer-${++asked}.${zone === '.' ? '' : zone}`);
    socket.send(
      makeQueryMessage(new QueryMessage(), name, 1).bytes,
      port,
      address,
      () => undefined,
    );
    await sleep(clock, asked === 1 ? 10 : PERIOD_MS);
  }
  socket.close();
  if (!isAnswered)
    log.warning(
      `no answer for ${zone} within ${LIMIT_MS / 1000} s; accepting the node's queries anyway`,
    );
}

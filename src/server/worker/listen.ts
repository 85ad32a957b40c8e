/** Makes listeners of planned listen addresses. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { FILE_MAX, readFileBytes } from '../../base/read-file.ts';
import type { CountersOf } from '../../net/listener-counters.ts';
import type { Listener, ListenerTerms, ListenerTls, Serve } from '../../net/listener.ts';
import { openListeners } from '../../net/open.ts';
import type { UdpMode } from '../../net/transports.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';

/** What opening a listener needs. */
export interface ListenParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly counters: CountersOf;
  readonly transport: UdpMode;
  /** The same in all workers: see `ListenerTls`. */
  readonly ticketSecret: Uint8Array;
}

/** The listener of one planned listen address. */
export function listenAt(
  endpoint: EndpointPlan,
  serve: Serve,
  { clock, log, counters, transport, ticketSecret }: ListenParts,
): Listener {
  const { scheme, address, port } = endpoint;
  return openListeners(
    {
      endpoint: { scheme, address, port },
      terms: termsOf(endpoint, ticketSecret),
      serve,
      clock,
      log,
      counters,
    },
    transport,
  );
}

/** The limits, the proxy policy and the certificate (read from its files) of a plan. */
export function termsOf(
  { limits, tls, proxy }: EndpointPlan,
  ticketSecret: Uint8Array,
): ListenerTerms {
  return { limits, tls: tls === null ? null : readTls(tls, ticketSecret), proxy };
}

function readTls(plan: NonNullable<EndpointPlan['tls']>, ticketSecret: Uint8Array): ListenerTls {
  const { certificate, key, authority, clientAuth, keyLog } = plan;
  const read = (file: string): Buffer => readFileBytes(file, FILE_MAX.small);
  return {
    certificate: read(certificate),
    key: read(key),
    authority: authority === '' ? null : read(authority),
    clientAuth,
    ticketSecret,
    keyLog: keyLog === '' ? null : keyLog,
  };
}

/** Creates listeners for planned listen addresses. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { CountersOf } from '../../transport/listener-counters.ts';
import type { Listener, ListenerTerms, ListenerTls, Serve } from '../../transport/listener.ts';
import { openListeners } from '../../transport/open.ts';
import type { UdpMode } from '../../transport/transports.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import type { TlsPlan } from '../contract/block-plan.ts';
import type { Program } from '../contract/protocol.ts';
import { fileAt } from './generation.ts';

export interface ListenParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly counters: CountersOf;
  readonly transport: UdpMode;
  /** The same in all workers; see `ListenerTls`. */
  readonly ticketSecret: Uint8Array;
  readonly files: Program['files'];
  /** See `ListenerParts`. */
  readonly isShort: () => boolean;
}

/** Creates the listener for one planned listen address. */
export function listenAt(
  endpoint: EndpointPlan,
  serve: Serve,
  { clock, log, counters, transport, ticketSecret, files, isShort }: ListenParts,
): Listener {
  const { scheme, address, port } = endpoint;
  return openListeners(
    {
      endpoint: { scheme, address, port },
      terms: termsOf(endpoint, ticketSecret, files),
      serve,
      clock,
      log,
      counters,
      isShort,
    },
    transport,
  );
}

/**
 * Returns a plan's limits, proxy policy and certificate.
 * @param files the configuration's files
 */
export function termsOf(
  { limits, tls, proxy }: EndpointPlan,
  ticketSecret: Uint8Array,
  files: Program['files'],
): ListenerTerms {
  return { limits, tls: tls === null ? null : readTls(tls, ticketSecret, files), proxy };
}

function readTls(
  { certificate, key, authority, clientAuth, keyLog }: TlsPlan,
  ticketSecret: Uint8Array,
  files: Program['files'],
): ListenerTls {
  const read = (file: string): Buffer => fileAt(file, files);
  return {
    certificate: read(certificate),
    key: read(key),
    authority: authority === '' ? null : read(authority),
    clientAuth,
    ticketSecret,
    keyLog: keyLog === '' ? null : keyLog,
  };
}

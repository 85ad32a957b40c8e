/** Creates listeners for planned listen addresses. */
import type {
  Listener,
  ListenerParts,
  ListenerTerms,
  ListenerTls,
  Serve,
} from '../../transport/listener.ts';
import { openListeners } from '../../transport/open.ts';
import type { UdpMode } from '../../transport/transports.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import type { TlsPlan } from '../contract/block-plan.ts';
import type { Program } from '../contract/protocol.ts';
import { fileAt } from './generation.ts';

export interface ListenParts extends Pick<ListenerParts, 'clock' | 'log' | 'counters' | 'isShort'> {
  readonly transport: UdpMode;
  /** The same in all workers; see `ListenerTls`. */
  readonly ticketSecret: Uint8Array;
  readonly files: Program['files'];
}

/** Creates the listener for one planned listen address. */
export function listenAt(
  plan: EndpointPlan,
  serve: Serve,
  { transport, ticketSecret, files, ...parts }: ListenParts,
): Listener {
  const { scheme, address, port } = plan;
  const terms = termsOf(plan, ticketSecret, files);
  return openListeners({ ...parts, endpoint: { scheme, address, port }, terms, serve }, transport);
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

/** Creates upstreams that use this machine's sockets. */
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { sendingRound } from '../runtime/connected-socket.ts';
import { batchedUdp } from '../runtime/packet-loop.ts';
import { GrpcUpstream } from './grpc/grpc-upstream.ts';
import { HttpsUpstream } from './https/https-upstream.ts';
import type { Network, Upstream, UpstreamParts } from './upstream-address.ts';
import { PortAllowance } from './udp/port-allowance.ts';
import { StreamUpstream } from './stream/stream-upstream.ts';
import { TimerWheel } from './timer-wheel.ts';
import type { UdpMode } from './transports.ts';
import { batchedUdpPort, plainUdpPort } from './udp/udp-port.ts';
import { UdpUpstream } from './udp/udp-upstream.ts';

/** Granularity of exchange timeouts in milliseconds. */
const TICK_MS = 20;

export interface SystemNetworkParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Selects how UDP messages are sent and received. Batching is used only where it works. */
  readonly transport: UdpMode;
  /** Maximum number of open UDP sockets for all upstreams together. Infinity means no limit. */
  readonly sourcePorts?: number;
  /** Called once when an upstream gets fewer source ports than configured. */
  readonly onFewPorts?: () => void;
}

/**
 * Returns a factory for upstreams that use the machine's sockets. Each thread has one, and all its timeouts share a
 * single timer.
 */
export function systemNetwork({
  clock,
  random,
  transport,
  sourcePorts = Infinity,
  onFewPorts = () => undefined,
}: SystemNetworkParts): Network {
  const wheel = new TimerWheel(clock, TICK_MS);
  const now = (): number => clock.now();
  const batched = transport !== 'plain' && batchedUdp().available;
  const allowance = new PortAllowance(sourcePorts, onFewPorts);
  const openPort = batched ? batchedUdpPort : plainUdpPort;
  let sent = 0;
  const batch = batched ? sendingRound : (): number => sent++;
  return {
    upstream(upstream: UpstreamParts): Upstream {
      switch (upstream.proto) {
        case 'udp':
          return new UdpUpstream({ upstream, clock, wheel, random, openPort, batch, allowance });
        case 'tcp':
        case 'tls':
          return new StreamUpstream({ upstream, wheel, random, now });
        case 'https':
          return new HttpsUpstream({ upstream, wheel, now });
        case 'grpc':
          return new GrpcUpstream({ upstream, wheel, clock });
      }
    },
  };
}

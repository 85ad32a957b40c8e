import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { batchedUdp } from '../linux/packet-loop.ts';
import { HttpsUpstream } from './https-upstream.ts';
import type { Network, NetworkCounters, Upstream, UpstreamParts } from './network.ts';
import { StreamUpstream } from './stream-upstream.ts';
import { TimerWheel } from './timer-wheel.ts';
import { batchedUdpPort, plainUdpPort } from './udp-port.ts';
import { UdpUpstream } from './udp-upstream.ts';

/** How late a timeout of an exchange may come. */
const TICK_MS = 20;

export interface SystemNetworkParts {
  readonly clock: Clock;
  readonly random: Random;
  /** How UDP is spoken: `auto` is batched where that works. */
  readonly transport: 'auto' | 'batched' | 'plain';
}

export interface SystemNetwork extends Network {
  readonly counters: NetworkCounters;
}

/** Upstreams over the machine's sockets. One per thread; all its timeouts hang on one alarm of the clock. */
export function systemNetwork({ clock, random, transport }: SystemNetworkParts): SystemNetwork {
  const counters: NetworkCounters = {
    exchanges: 0,
    timeouts: 0,
    strays: 0,
    udpSockets: 0,
    connections: 0,
  };
  const wheel = new TimerWheel(clock, TICK_MS);
  const now = (): number => clock.now();
  const batched = transport !== 'plain' && batchedUdp().available;
  const openPort = batched ? batchedUdpPort : plainUdpPort;
  return {
    counters,
    upstream(upstream: UpstreamParts): Upstream {
      switch (upstream.proto) {
        case 'udp':
          return new UdpUpstream({ upstream, wheel, random, now, openPort, counters });
        case 'tcp':
        case 'tls':
          return new StreamUpstream({ upstream, wheel, random, now, counters });
        case 'https':
          return new HttpsUpstream({ upstream, wheel, now, counters });
      }
    },
  };
}

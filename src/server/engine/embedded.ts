/** A complete server in memory, without sockets or threads. */
import type { Maybe } from '../base/maybe.ts';
import { SharedRegistry } from '../metrics/shared-registry.ts';
import { Intake } from '../transport/intake.ts';
import { usualLimits } from '../transport/limits/limits.ts';
import { listenerCounters } from '../transport/listener-counters.ts';
import type { Listener, Serve } from '../transport/listener.ts';
import type { Network } from '../transport/upstream-address.ts';
import { OutletPending, type Outlet } from '../transport/outlet.ts';
import type { Query } from '../transport/query.ts';
import type { Proto } from '../wire/query-message.ts';
import type { EndpointPlan } from './contract/endpoints.ts';
import type { Plugin } from './contract/plugin.ts';
import { Server, type ServerParts } from './control/server.ts';
import { inlinePort } from './control/worker-ports.ts';
import { DataPlane } from './worker/data-plane.ts';

type GivenParts = 'plugins' | 'clock' | 'random' | 'log' | 'env' | 'load' | 'directory';

export interface EmbeddedParts extends Pick<ServerParts, GivenParts> {
  readonly network: Network;
  /** True to include plugins that only operate a running server (`Plugin.operational`): probes, metrics and reloads. */
  readonly operational: boolean;
  /** Called with the message when something would end the process. */
  readonly onFatal: (text: string) => void;
}

/** A message's client, transport, and queried address. */
export interface Sender {
  readonly proto: Proto;
  /** 4 or 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
  /** The server's address that was queried, as text, and its port. */
  readonly local: string;
  readonly localPort: number;
  /** True if the limit on waiting queries has been reached. The default is false. */
  readonly crowded?: boolean;
}

/** A listen address (`dns://:53`) in memory, with an intake for each protocol. */
interface Opened {
  readonly endpoint: EndpointPlan;
  readonly intakes: Map<Proto, Intake>;
  readonly serve: Serve;
}

/**
 * A complete server in memory: the control plane and one worker on this thread, with the given clock, random numbers
 * and upstreams. It opens no DNS socket. Messages are exchanged as bytes, and are parsed and written as they would be
 * by a listener. With a virtual clock, nothing happens until the caller advances it.
 */
export class EmbeddedServer {
  /** The control plane, used for reloads, metrics and the list of listen addresses. */
  readonly server: Server;
  readonly #parts: EmbeddedParts;
  readonly #opened = new Map<string, Opened>();

  constructor(parts: EmbeddedParts) {
    this.#parts = parts;
    const { network, operational, ...given } = parts;
    const plugins = operational
      ? parts.plugins
      : async (names?: ReadonlySet<string>) => (await parts.plugins(names)).map(idle);
    this.server = new Server({
      ...given,
      plugins,
      workers: () => 1,
      spawn: () =>
        inlinePort(
          (send) =>
            new DataPlane({
              plugins,
              clock: parts.clock,
              random: parts.random,
              log: parts.log,
              network,
              send,
              crash: (error) => parts.onFatal(String(error)),
              listen: (endpoint, serve) => this.#listen(endpoint, serve),
              metrics: new SharedRegistry((registration) =>
                send({ kind: 'register', registration }),
              ),
            }),
        ),
    });
  }

  /** @throws Problems */
  start(): Promise<void> {
    return this.server.start();
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }

  /** Open listen addresses with scheme, in Corefile order. */
  get open(): readonly EndpointPlan[] {
    return [...this.#opened.values()].map(({ endpoint }) => endpoint);
  }

  /**
   * Sends a message to a listen address.
   * @returns the reply, or null if the server stays silent
   */
  async exchange(message: Uint8Array, from: Sender, server: string): Promise<Uint8Array | null> {
    const opened = this.#opened.get(server);
    if (opened === undefined) throw new Error(`nothing listens at ${server}`);
    const intake = this.#intakeOf(opened, from);
    const bytes = message.slice();
    return new Promise((resolve) => {
      const asked = intake.take(
        new Mailbox(from, resolve),
        bytes,
        0,
        bytes.length,
        this.#parts.clock.now(),
      );
      if (!asked) resolve(null);
      // A real listener reads the next message into the same buffer. This reveals plugins that did not copy a query.
      bytes.fill(0xff);
      intake.take(nobody, bytes, 0, 0, 0);
    });
  }

  #listen(endpoint: EndpointPlan, serve: Serve): Listener {
    const { server, port } = endpoint;
    return {
      endpoint,
      port,
      adopt: () => undefined,
      open: () => {
        this.#opened.set(server, { endpoint, serve, intakes: new Map() });
        return Promise.resolve();
      },
      close: () => {
        this.#opened.delete(server);
        return Promise.resolve();
      },
    };
  }

  #intakeOf({ intakes, endpoint, serve }: Opened, { proto, crowded = false }: Sender): Intake {
    let intake = intakes.get(proto);
    if (intake === undefined) {
      const { clock, log } = this.#parts;
      const counters = listenerCounters(null, endpoint.server)(proto);
      intake = new Intake({ proto, serve, clock, log, counters, limits: usualLimits });
      intakes.set(proto, intake);
    }
    intake.adopt(crowded ? { ...usualLimits, waiting: 0 } : usualLimits);
    return intake;
  }
}

/** Returns a plugin that accepts its directive and does nothing. */
function idle(plugin: Plugin): Plugin {
  return plugin.operational === true ? { name: plugin.name, syntax: plugin.syntax } : plugin;
}

/** The largest message, plus what a client's EDNS options add. */
const MESSAGE_ROOM = 70_000;

class Mailbox implements Outlet<null> {
  readonly pending = new OutletPending();
  readonly out = new Uint8Array(MESSAGE_ROOM);
  readonly at = 0;
  readonly full = false;
  readonly #from: Sender | null;
  readonly #deliver: (reply: Uint8Array | null) => Maybe<void>;

  constructor(from: Sender | null, deliver: (reply: Uint8Array | null) => Maybe<void>) {
    this.#from = from;
    this.#deliver = deliver;
  }

  identify(query: Query): void {
    if (this.#from === null) return;
    const { proto, address, port, local, localPort } = this.#from;
    query.proto = proto;
    query.family = address.length === 4 ? 4 : 6;
    query.peer = address;
    query.peerAt = 0;
    query.peerPort = port;
    query.local = local;
    query.localPort = localPort;
  }

  reserve(): void {
    // The buffer has room for any reply.
  }

  send(length: number): void {
    void this.#deliver(this.out.slice(0, length));
  }

  keepSilent(): void {
    void this.#deliver(null);
  }

  wayBack(): null {
    return null;
  }

  hold(): void {
    // Replies are delivered within the process, so no reader is slow.
  }

  flush(): void {
    // The reply has been delivered already.
  }
}

const nobody = new Mailbox(null, () => undefined);

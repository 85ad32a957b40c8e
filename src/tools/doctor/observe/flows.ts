/** A capture’s flows. Each is one client port and one server. */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { flowRows, FlowView } from './flow-view.ts';
import { PairMap } from './pair-map.ts';

type Ends = Pick<SeenExchange, 'client' | 'server'>;

const PORTS = 65_536;

export class Flows {
  /** By client address, then by server number and port. */
  readonly #flows: PairMap<string, number, FlowView>;
  readonly #servers = new Map<string, number>();
  readonly #most: number;
  #present: SeenExchange | null = null;
  #rows = flowRows();
  #byServer: ReadonlyMap<string, readonly FlowView[]> | null = null;
  readonly #make = (): FlowView => {
    this.#byServer = null;
    return new FlowView(this.#present!, this.#rows);
  };

  /** @param most flows to store; more are only counted */
  constructor(most: number) {
    this.#most = most;
    this.#flows = new PairMap(most);
  }

  /** Returns the flow of the exchange, made on first use; null once there are too many. */
  at(exchange: SeenExchange): FlowView | null {
    const { client, server } = exchange;
    let number = this.#servers.get(server.address);
    if (number === undefined) {
      number = this.#servers.size;
      // There are as many servers as flows, so there is no room for another one.
      if (number < this.#most) this.#servers.set(server.address, number);
    }
    this.#present = exchange;
    return this.#flows.at(client.address, number * PORTS + client.port, this.#make);
  }

  get(exchange: Ends): FlowView | undefined {
    const { client, server } = exchange;
    const number = this.#servers.get(server.address);
    if (number === undefined) return undefined;
    return this.#flows.get(client.address, number * PORTS + client.port);
  }

  get leftOut(): number {
    return this.#flows.leftOut;
  }

  clear(): void {
    this.#byServer = null;
    this.#flows.clear();
    this.#rows = flowRows();
  }

  /** In the order of their first queries. */
  get list(): readonly FlowView[] {
    return this.#flows.list;
  }

  /** Flows to one server, in the same order. */
  to(server: string): readonly FlowView[] {
    this.#byServer ??= Map.groupBy(this.list, (flow) => flow.server);
    return this.#byServer.get(server) ?? [];
  }

  /** Flows from these clients to one server, in the same order. */
  between(clients: Iterable<string>, server: string): readonly FlowView[] {
    const theirs = new Set(clients);
    return this.to(server).filter(({ client }) => theirs.has(client));
  }
}

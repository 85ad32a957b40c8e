/**
 * Counts packets other than DNS messages: ICMP errors, TCP handshakes and resets, neighbour discovery, and the clients’
 * other connections.
 */
import { isLoopbackHost, printAddress } from '../../../server/base/ip.ts';
import type { PathEvent } from '../../capture/read/packets/dissect.ts';
import { BoundedMap } from './bounded-map.ts';
import { ClaimedAddresses } from './claimed-addresses.ts';
import { Contacts } from './contacts.ts';
import { GivenUp } from './given-up.ts';
import {
  ADDRESS_UNREACHABLE,
  CLOSED,
  HOST_UNREACHABLE,
  PROHIBITED,
  type Rejection,
  type Unreachable,
} from './icmp-errors.ts';
import { MulticastNames } from './multicast-names.ts';
import { Neighbours } from './neighbours.ts';
import { MOST } from './observation-limits.ts';
import { OtherConnections } from './other-connections.ts';
import { OtherSockets } from './other-sockets.ts';
import { PathTimes } from './path-times.ts';
import { ServerConnections } from './server-connections.ts';
import { StuckConnections, StuckSegments } from './stuck-connections.ts';
import { WantedNeighbours } from './wanted-neighbours.ts';

/** The ports of name servers. Connections to other ports are not DNS. */
const ports: ReadonlySet<number> = new Set([53, 5353]);

/** Senders of errors about one way that are remembered. */
const SENDERS_MAX = 8;

/** ICMP errors of firewalls. */
interface Prohibited {
  count: number;
  readonly senders: Set<string>;
}

const newProhibited = (): Prohibited => ({ count: 0, senders: new Set() });

/** The observations that do not need DNS messages. */
export class PathObservations {
  readonly connections: ServerConnections = new ServerConnections();
  /** ICMP errors for a missing address that the capture cuts off: recipient and time. */
  readonly unquoted: { readonly timeMs: number; readonly client: string }[] = [];
  /** ICMP errors, by the address that was not reached. */
  readonly unreachable: BoundedMap<string, Unreachable> = new BoundedMap(MOST.addresses);
  readonly rejections: Rejection[] = [];
  /** Sockets of clients, address and port, whose kernel refused a reply (ICMP). */
  readonly refusedReplies: BoundedMap<string, true> = new BoundedMap(MOST.events);
  tooBig: number = 0;
  /** Sockets, address and port, that a packet was on its way to when it was found too big. */
  readonly outgrown: BoundedMap<string, true> = new BoundedMap(MOST.events);
  /** Sockets, address and port, whose host reported that fragments did not arrive (ICMP). */
  readonly incomplete: BoundedMap<string, true> = new BoundedMap(MOST.events);
  /** Clients' ends of TCP connections (address and port) that got later segments, and never an earlier one. */
  readonly gapped: Set<string> = new Set();
  readonly stuckSegments: StuckSegments = new StuckSegments();
  readonly stuckConnections: StuckConnections = new StuckConnections();
  /** Connections without DNS: opened, and retried because nothing came. */
  readonly others: OtherConnections = new OtherConnections();
  readonly multicast: MulticastNames = new MulticastNames();
  readonly contacts: Contacts = new Contacts();
  readonly pathTimes: PathTimes = new PathTimes();
  readonly otherSockets: OtherSockets = new OtherSockets();
  /**
   * Sockets (address and port) with packets whose translated address no host on a router's link
   * has.
   */
  readonly astray: BoundedMap<string, true> = new BoundedMap(MOST.events);
  /** Firewalls’ ICMP errors (administratively prohibited), by `client server` of the rejected packets. */
  readonly prohibited: BoundedMap<string, Prohibited> = new BoundedMap(MOST.addresses);
  /** Replies that came when their clients had given up. */
  readonly givenUp: GivenUp = new GivenUp();
  readonly neighbours: Neighbours = new Neighbours();
  readonly claimedAddresses: ClaimedAddresses = new ClaimedAddresses();
  readonly wantedNeighbours: WantedNeighbours = new WantedNeighbours();

  path(event: PathEvent): void {
    const { kind, head, addressesAt, family, sourcePort, targetPort, timeMs } = event;
    const size = family === 4 ? 4 : 16;
    const source = printAddress(head, addressesAt, size);
    const target = printAddress(head, addressesAt + size, size);
    if (kind === 'too-big') {
      this.tooBig++;
      this.outgrown.at(`${target} ${targetPort}`, () => true);
    } else if (kind === 'incomplete') {
      this.incomplete.at(`${target} ${targetPort}`, () => true);
    } else if (kind === 'unquoted') {
      if (event.code === ADDRESS_UNREACHABLE && this.unquoted.length < MOST.events)
        this.unquoted.push({ timeMs, client: target });
    } else if (kind === 'unreachable') {
      this.#unreachable(event, source, target);
    } else if (kind === 'multicast') this.multicast.add(source, event);
    else if (kind === 'datagram')
      this.otherSockets.datagram(source, sourcePort, targetPort, timeMs);
    else if (kind === 'syn') {
      this.pathTimes.opening(source, sourcePort, target, targetPort, timeMs);
      if (!ports.has(targetPort)) this.otherSockets.add(source, sourcePort, timeMs);
      if (ports.has(targetPort))
        this.connections.opening(source, target, `${sourcePort} ${targetPort}`, timeMs);
      else {
        this.others.opening(`${source} ${sourcePort} ${target} ${targetPort}`, timeMs);
        this.contacts.opening(source, sourcePort, target, targetPort, timeMs, event.code);
      }
    } else if (kind === 'fin') this.connections.ended(source, sourcePort, target, targetPort);
    else if (kind === 'gap') {
      if (ports.has(sourcePort) && this.gapped.size < MOST.events)
        this.gapped.add(`${target} ${targetPort}`);
    } else if (kind === 'gap-filled') this.gapped.delete(`${target} ${targetPort}`);
    else if (kind === 'segment-again') {
      if (ports.has(sourcePort)) this.stuckSegments.again(target, targetPort, event.code, timeMs);
    } else if (ports.has(sourcePort)) {
      if (kind === 'syn-ack') this.pathTimes.opened(target, targetPort, source, sourcePort, timeMs);
      const both = `${targetPort} ${sourcePort}`;
      this.connections.replied(target, source, both, kind === 'syn-ack', timeMs);
    } else if (kind === 'payload') {
      this.contacts.payload(source, sourcePort, target, targetPort, event.code, timeMs);
      this.stuckConnections.segment(source, sourcePort, target, targetPort, event);
      if (event.certificate !== null)
        this.contacts.certificate(source, sourcePort, event.certificate, timeMs);
    } else if (kind === 'rejected')
      this.contacts.ended(source, sourcePort, target, targetPort, 'unreachable');
    else if (kind === 'syn-ack') {
      this.others.answered(`${target} ${targetPort} ${source} ${sourcePort}`);
      this.pathTimes.opened(target, targetPort, source, sourcePort, timeMs);
      this.contacts.accepted(target, targetPort, source, sourcePort);
    } else if (ports.has(targetPort))
      this.connections.ended(source, sourcePort, target, targetPort);
    else this.contacts.ended(target, targetPort, source, sourcePort, 'refused');
  }

  #unreachable(event: PathEvent, source: string, target: string): void {
    const { family, sourcePort, targetPort, timeMs } = event;
    const size = family === 4 ? 4 : 16;
    const sender = printAddress(event.sender, event.senderAt, size);
    if (CLOSED.has(event.code) && ports.has(sourcePort)) {
      this.givenUp.unreachable(target, targetPort, timeMs);
      this.refusedReplies.at(`${target} ${targetPort}`, () => true);
    }
    // A proxy on the loopback may have any port.
    const isDns = ports.has(targetPort) || isLoopbackHost(target);
    if (CLOSED.has(event.code) && isDns && this.rejections.length < MOST.events) {
      this.rejections.push({ timeMs, sender, client: source, port: sourcePort, target });
    }
    if (PROHIBITED.has(event.code)) {
      const way = this.prohibited.at(`${source} ${target}`, newProhibited);
      if (way !== null) way.count++;
      if (way !== null && way.senders.size < SENDERS_MAX) way.senders.add(sender);
    }
    const made = { count: 0, sender, noNeighbour: 0, code: event.code };
    const entry = this.unreachable.at(target, () => made);
    if (entry === null) return;
    entry.count++;
    if (event.code === (family === 4 ? HOST_UNREACHABLE : ADDRESS_UNREACHABLE)) {
      entry.noNeighbour++;
      this.astray.at(`${source} ${sourcePort}`, () => true);
    }
  }

  neighbour(
    timeMs: number,
    isReply: boolean,
    bytes: Uint8Array,
    at: number,
    size: 4 | 16,
    fromAt: number,
    hardwareAt = 0,
  ): void {
    const address = printAddress(bytes, at, size);
    if (hardwareAt > 0) {
      const claimed = isReply ? address : printAddress(bytes, fromAt, size);
      this.claimedAddresses.claim(claimed, bytes.subarray(hardwareAt, hardwareAt + 6));
    }
    if (isReply) this.neighbours.answered(address);
    else {
      this.neighbours.asked(address);
      this.wantedNeighbours.asked(printAddress(bytes, fromAt, size), address, timeMs);
    }
  }
}

/**
 * Counts of exchanges by server, client, flow, name and type, and a bounded number of failed ones.
 * Filled while a capture is read, in bounded memory.
 */
import { FLAG, RCODE } from '../../../server/wire/iana.ts';
import { recognise } from './client-list.ts';
import {
  addReply,
  addPort,
  forgetDetails,
  newAsked,
  newClient,
  type ClientView,
} from './client-view.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import type { SearchDomains } from '../../capture/pair/search-walk.ts';
import {
  finalServer,
  isLost,
  latencyOf,
  type SeenExchange,
  type SeenLookup,
} from '../../capture/pair/seen-exchange.ts';
import type { LoggedFailure } from '../../capture/read/records/query-log.ts';
import { AbsentNames } from './absent-names.ts';
import { AskedAgain } from './asked-again.ts';
import { BoundedMap } from './bounded-map.ts';
import { EqualQuestions } from './crowding.ts';
import { BucketReplay } from './bucket-replay.ts';
import { Counters } from './counters.ts';
import { FailedLookups, isUnanswered } from './failed-lookups.ts';
import { Flows } from './flows.ts';
import { LOGGED_MAX, LoggedCauses } from './logged-causes.ts';
import { Names } from './names.ts';
import { NewSockets } from './new-sockets.ts';
import { countOutcome, isFailure, noOutcomes, type Outcomes } from './outcomes.ts';
import { PathObservations } from './path-observations.ts';
import { QueryPairs } from './query-pairs.ts';
import { QuestionCase } from './question-case.ts';
import { Rates } from './rates.ts';
import { isReverseLookup } from './reverse-lookup.ts';
import { RefusedNames } from './refused-names.ts';
import { ReplyFaults } from './reply-faults.ts';
import { SecondReplies } from './second-replies.ts';
import { isServiceConfig } from './service-config.ts';
import { ServerNames } from './server-names.ts';
import { isLong, LookupThreads } from './lookup-threads.ts';
import { MOST } from './observation-limits.ts';
import { ServerView } from './server-view.ts';
import { SeenSignatures } from './seen-signatures.ts';
import { AllServiceTargets } from './service-targets.ts';
import { WaitingLine } from './waiting-line.ts';
import { Ways } from './ways.ts';
import { FELT_MS, LATE_MS, MIN_QUERIES } from '../thresholds/evidence.ts';

/** Servers of one client. */
const SERVERS_MAX = 50;

export type Moment = Pick<SeenExchange, 'sentMs' | 'client'>;

export interface LateReply extends Moment {
  readonly repliedMs: number;
  /** The server that was queried, or the one behind its address. */
  readonly server: string;
}

export type Failure = Pick<
  SeenExchange,
  'sentMs' | 'repliedMs' | 'client' | 'server' | 'name' | 'type' | 'rcode'
>;

/** A table that is full. */
export interface LeftOut {
  /** `queries of more clients`. */
  readonly what: string;
  readonly most: number;
  readonly count: number;
}

/** Everything that findings examine. */
export class Observations extends PathObservations {
  readonly domains: SearchDomains;
  readonly total: Outcomes = noOutcomes();
  /** Of these, the extra lookups of gRPC. */
  readonly serviceConfigs: Outcomes = noOutcomes();
  /** Of these, those that turn addresses into names. */
  readonly reverse: Outcomes = noOutcomes();
  readonly types: BoundedMap<number, Outcomes> = new BoundedMap(500);
  readonly servers: BoundedMap<string, ServerView> = new BoundedMap(MOST.servers);
  readonly serverNames: ServerNames = new ServerNames();
  /** Those behind the addresses of services, where the capture shows them. */
  readonly backends: BoundedMap<string, ServerView> = new BoundedMap(MOST.servers);
  /** By server: answered queries whose checksum was wrong, as if the capture, and not the network, had changed it. */
  readonly answeredDamaged: BoundedMap<string, { count: number }> = new BoundedMap(MOST.servers);
  /** By server: the times of queries, for a limit on packets. */
  readonly replays: BoundedMap<string, BucketReplay> = new BoundedMap(MOST.replays);
  /** By server: equal questions, for a limit on equal replies. */
  readonly equalQuestions: BoundedMap<string, EqualQuestions> = new BoundedMap(MOST.replays);
  /** By server: latencies by the number of waiting queries. */
  readonly lines: BoundedMap<string, WaitingLine> = new BoundedMap(MOST.replays);
  readonly clients: BoundedMap<string, ClientView> = new BoundedMap(MOST.clients);
  readonly flows: Flows = new Flows(MOST.flows);
  readonly newSockets: NewSockets = new NewSockets();
  readonly names: Names = new Names(MOST.names);
  readonly losses: SeenExchange[] = [];
  /** SERVFAIL, REFUSED and other errors, but not NXDOMAIN. */
  readonly failed: Failure[] = [];
  readonly ways: Ways = new Ways();
  readonly slow: LateReply[] = [];
  /** Lookups that took long, failed, or lost something. */
  readonly affected: SeenLookup[] = [];
  /** Lookups, the first ones, that were late and are not among the affected ones: nothing else is wrong with them. */
  readonly late: SeenLookup[] = [];
  /** Lookups that took long, of whose names the capture has only the beginning. */
  readonly slowCut: SeenLookup[] = [];
  /** Lookups, the first ones, that ended with a name that a search domain of others made. */
  readonly searched: SeenLookup[] = [];
  /** First queries of lookups that began when the client's kernel had given up an address. */
  readonly begunLate: SeenExchange[] = [];
  /** Exchanges whose reply was cut to fit into UDP. */
  readonly truncated: SeenExchange[] = [];
  /** Pairs from one port, and from two. */
  readonly pairs: QueryPairs = new QueryPairs((exchange) => this.#kept.keep(exchange));
  readonly counters: Counters = new Counters();
  /** Exchanges that another server answered than the one queried. */
  readonly strays: SeenExchange[] = [];
  /** Queries of whose names the capture has only the beginning. */
  cutNames: number = 0;
  /** Messages of which the capture has only the beginning, and all. */
  readonly cut: { messages: number; of: number } = { messages: 0, of: 0 };
  readonly failures: LoggedFailure[] = [];
  readonly logged: LoggedCauses = new LoggedCauses();
  /** Names that do not exist, without those that search paths make. */
  readonly absent: AbsentNames = new AbsentNames();
  readonly questionCase: QuestionCase = new QuestionCase();
  /** Replies that are of no use, and the reasons that servers give for failures. */
  readonly replyFaults: ReplyFaults = new ReplyFaults();
  readonly secondReplies: SecondReplies = new SecondReplies();
  readonly signatures: SeenSignatures = new SeenSignatures();
  readonly serviceTargets: AllServiceTargets = new AllServiceTargets();
  readonly refusals: RefusedNames = new RefusedNames();
  /** Questions that were asked again although their reply had passed. */
  readonly askedAgain: AskedAgain;
  lookups: number = 0;
  /** Those that took a second or more, or got no reply, so that their programs waited for their timeout. */
  slowLookups: number = 0;
  /** Of these, those that ended sooner in the capture and got no reply. */
  silentLookups: number = 0;
  /** Queries without a reply when the capture ended, which may have been answered afterwards. */
  unfinished: number = 0;
  readonly failedLookups: FailedLookups;
  /** Queries for names that the search path made, and that do not exist; without those of gRPC. */
  wasted: number = 0;
  firstMs: number = Infinity;
  lastMs: number = -Infinity;
  /** The time of the last query whose end is unknown. */
  endMs: number = -Infinity;
  /** Packets of which fragments were missing. */
  missingFragments: number = 0;
  /** Directions of TCP connections in which later segments came, and earlier ones did not. */
  missingSegments: number = 0;
  readonly #kept = new CopiedBytes();
  /** Clients of which there are `rates`. */
  #followed = 0;
  /** Clients of which there are `threads`. */
  #timed = 0;
  #lossesLeftOut = 0;
  #lookupsLeftOut = 0;

  /** @param domains the search domains that the reading has learned */
  constructor(domains: SearchDomains) {
    super();
    this.domains = domains;
    this.askedAgain = new AskedAgain(domains);
    this.failedLookups = new FailedLookups(domains, MOST.names);
  }

  /** Seconds from the first query to the last reply. */
  get seconds(): number {
    return Math.max(0, (this.lastMs - this.firstMs) / 1000);
  }

  /** Entries beyond a limit: they are in the sums, but no finding names them. */
  get leftOut(): readonly LeftOut[] {
    const all: readonly LeftOut[] = [
      { what: 'queries of clients', most: MOST.clients, count: this.clients.leftOut },
      { what: 'queries to servers', most: MOST.servers, count: this.servers.leftOut },
      { what: 'queries from sockets', most: MOST.flows, count: this.flows.leftOut },
      { what: 'queries for names and types', most: MOST.names, count: this.names.leftOut },
      { what: 'lost queries', most: MOST.losses, count: this.#lossesLeftOut },
      { what: 'log lines of upstreams', most: LOGGED_MAX, count: this.logged.leftOut },
      { what: 'slow or failed lookups', most: MOST.lookups, count: this.#lookupsLeftOut },
    ];
    return all.filter(({ count }) => count > 0);
  }

  affectedExchanges(isWanted: (exchange: SeenExchange) => boolean): SeenExchange[] {
    return this.affected.flatMap(({ exchanges }) => exchanges.filter(isWanted));
  }

  /** Drops most of the memory, which only findings use. Sums, servers and resolvers of clients stay. */
  forgetDetails(): void {
    for (const client of this.clients.list) forgetDetails(client);
    this.names.clear();
    this.replyFaults.clear();
    this.refusals.clear();
    this.askedAgain.clear();
    this.flows.clear();
    this.replays.clear();
    this.equalQuestions.clear();
    this.lines.clear();
    this.affected.length = 0;
    this.slowCut.length = 0;
    this.late.length = 0;
    this.searched.length = 0;
    this.begunLate.length = 0;
    this.losses.length = 0;
    this.rejections.length = 0;
    this.otherSockets.clear();
    this.contacts.clear();
    this.connections.reused.clear();
    this.pathTimes.clear();
    this.multicast.clear();
    this.stuckConnections.clear();
  }

  exchange(exchange: SeenExchange): void {
    if (exchange.ending === 'waiting') return;
    this.serverNames.give(exchange);
    if (exchange.ending === 'open') {
      this.#unfinished(exchange);
      return;
    }
    const { server, sentMs, name, type } = exchange;
    if (exchange.logged !== 'without times') {
      this.firstMs = Math.min(this.firstMs, sentMs);
      this.lastMs = Math.max(this.lastMs, exchange.repliedMs ?? sentMs);
    }
    countOutcome(this.total, exchange);
    if (isServiceConfig(name, type)) countOutcome(this.serviceConfigs, exchange);
    const isReverse = isReverseLookup(name, type);
    if (isReverse) countOutcome(this.reverse, exchange);
    const ofType = this.types.at(type, noOutcomes);
    if (ofType !== null) countOutcome(ofType, exchange);
    const isOwn = this.domains.isOfCluster(name);
    // A cut name may end in the cluster domain.
    if (isOwn || !isCut(name)) this.ways.add(exchange, isOwn);
    const last = finalServer(exchange).address;
    this.#atServer(exchange, isOwn, last);
    this.#client(exchange, isReverse);
    this.pathTimes.exchange(exchange);
    if (exchange.protocol === 'udp') {
      const flow = this.flows.at(exchange);
      if (flow !== null) {
        this.newSockets.add(exchange, flow.knew(exchange));
        flow.add(exchange);
      }
    }
    // Several names may begin alike.
    if (isCut(name)) this.cutNames++;
    else this.names.at(name, type)?.add(exchange);
    if (isLost(exchange)) this.#keep(exchange, this.losses, MOST.losses);
    if ((latencyOf(exchange) ?? 0) >= LATE_MS && this.slow.length < MOST.events) {
      const { client, repliedMs } = exchange;
      this.slow.push({ sentMs, client, repliedMs: repliedMs!, server: last });
    }
    if (isFailure(exchange) && this.failed.length < MOST.events) {
      const { repliedMs, client, rcode } = exchange;
      this.failed.push({ sentMs, repliedMs, client, server, name, type, rcode });
    }
    if (exchange.stray !== null) this.#keep(exchange, this.strays, MOST.events);
    this.questionCase.add(exchange);
    this.contacts.lookups.add(exchange);
    this.connections.reused.add(exchange);
    this.replyFaults.add(exchange);
    this.refusals.add(exchange);
    this.signatures.add(exchange);
    if (!isOwn) this.askedAgain.whileValid.add(exchange);
    this.serviceTargets.add(exchange);
    this.givenUp.add(exchange);
    this.askedAgain.add(exchange);
    if (exchange.damagedQuery === true && !isLost(exchange)) {
      const answered = this.answeredDamaged.at(last, () => ({ count: 0 }));
      if (answered !== null) answered.count++;
    }
    if (exchange.protocol === 'udp' && (exchange.replyFlags & FLAG.TC) !== 0)
      this.#keep(exchange, this.truncated, MOST.events);
  }

  /** A query that may still be answered when the capture ends. */
  #unfinished(exchange: SeenExchange): void {
    this.unfinished++;
    this.endMs = Math.max(this.endMs, exchange.sentMs);
    const { client, server } = exchange;
    this.servers.get(server.address)?.awaits(exchange);
    const last = finalServer(exchange).address;
    if (last !== server.address) this.backends.get(last)?.awaits(exchange);
    addPort(this.clients.get(client.address)?.servers.get(server.address), client.port);
  }

  #atServer(exchange: SeenExchange, isOwn: boolean, last: string): void {
    const { server } = exchange;
    const view = this.servers.at(server.address, newServer);
    view?.add(exchange, isOwn);
    // A server that is not among the first servers is not among the first few of them.
    if (view !== null) this.replays.at(server.address, newReplay)?.add(exchange);
    this.equalQuestions.at(last, newQuestions)?.add(exchange);
    this.lines.at(server.address, newLine)?.add(exchange);
    if (last !== server.address) {
      this.backends.at(last, newServer)?.add(exchange, isOwn);
      // Queries wait at the server that works, and not at the address that it shares with others.
      this.lines.at(last, newLine)?.add(exchange);
    }
  }

  lookup(lookup: SeenLookup): void {
    this.lookups++;
    const client = this.clients.get(lookup.client);
    if (client !== undefined) {
      client.lookups++;
      // Unbound's log has no ports.
      if (lookup.exchanges[0]!.client.port > 0) recognise(client.recognition, lookup);
      if (client.threads === null && isLong(lookup) && this.#timed < MOST.timed) {
        this.#timed++;
        client.threads = new LookupThreads();
      }
      client.threads?.add(lookup);
    }
    const whole = lookup.exchanges.filter(({ name }) => !isCut(name));
    if (whole.length === lookup.exchanges.length) this.#whole(lookup, client);
    else if (whole.length === 0) this.#cut(lookup);
    else {
      const candidates = lookup.candidates.filter((name) => !isCut(name));
      this.pairs.add(lookup.exchanges.filter(({ name }) => isCut(name)));
      this.#whole({ ...lookup, exchanges: whole, candidates }, client);
    }
  }

  /**
   * The question and its result are unknown; the times of the query and of the reply are known.
   */
  #cut(lookup: SeenLookup): void {
    const { exchanges, startMs, endMs } = lookup;
    this.pairs.add(exchanges);
    const isQuick = endMs - startMs <= FELT_MS;
    if (isQuick && !isUnanswered(exchanges)) return;
    this.slowLookups++;
    if (isQuick) this.silentLookups++;
    this.#keepLookup(lookup, this.slowCut, MOST.lookups);
  }

  #whole(lookup: SeenLookup, client: ClientView | undefined): void {
    const { exchanges, candidates, startMs, endMs } = lookup;
    if (this.wantedNeighbours.begun(lookup.client, startMs))
      this.#keep(exchanges[0]!, this.begunLate, MOST.searched);
    this.pairs.add(exchanges);
    this.absent.add(lookup);
    const last = candidates.at(-1);
    if (candidates.length > 1)
      for (const { name, type, rcode } of exchanges) {
        if (name === last || rcode !== RCODE.NXDOMAIN || isServiceConfig(name, type)) continue;
        this.wasted++;
        if (client !== undefined) client.wasted++;
      }
    const slow = endMs - startMs > FELT_MS;
    const isSilent = !slow && isUnanswered(exchanges);
    if (slow || isSilent) this.slowLookups++;
    if (isSilent) this.silentLookups++;
    let wrong = false;
    let found = false;
    for (const each of exchanges) {
      if (isLost(each) || isFailure(each)) wrong = true;
      if (each.answers > 0 && each.rcode === RCODE.NOERROR) found = true;
    }
    this.failedLookups.add(lookup, found);
    const isMade =
      found &&
      last !== undefined &&
      !candidates[0]!.startsWith(last) &&
      !this.domains.isOfCluster(last);
    if (isMade) this.#keepLookup(lookup, this.searched, MOST.searched);
    if (!slow && !wrong && found) {
      if (endMs - startMs >= LATE_MS) this.#keepLookup(lookup, this.late, MOST.searched);
      return;
    }
    const isKept = this.#keepLookup(lookup, this.affected, MOST.lookups);
    if (!isKept && (slow || wrong)) this.#lookupsLeftOut++;
  }

  #keepLookup(lookup: SeenLookup, list: SeenLookup[], most: number): boolean {
    if (list.length >= most) return false;
    for (const each of lookup.exchanges) this.#kept.keep(each);
    list.push(lookup);
    return true;
  }

  failure(failure: LoggedFailure): void {
    if (this.failures.length < MOST.events) this.failures.push(failure);
  }

  #keep(exchange: SeenExchange, list: SeenExchange[], most: number): void {
    if (list.length >= most) {
      if (list === this.losses) this.#lossesLeftOut++;
      return;
    }
    this.#kept.keep(exchange);
    list.push(exchange);
  }

  #client(exchange: SeenExchange, isReverse: boolean): void {
    const { address } = exchange.client;
    const view = this.clients.at(address, newClient);
    if (view === null) return;
    countOutcome(view.outcomes, exchange);
    if (exchange.protocol === 'tcp') view.byTcp++;
    if (exchange.udpSize > 0) view.withEdns++;
    if (isReverse) view.reverse++;
    if (exchange.hops.length > 0) view.translated++;
    let server = view.servers.get(exchange.server.address);
    if (server === undefined) {
      if (view.servers.size >= SERVERS_MAX) return;
      server = newAsked();
      view.servers.set(exchange.server.address, server);
    }
    server.asked++;
    addReply(server, exchange);
    if (server.asked === MIN_QUERIES && this.#followed < MOST.rates) {
      this.#followed++;
      server.rates = new Rates();
      server.replay = new BucketReplay(MOST.ofClient);
    }
    server.rates?.add(exchange);
    server.replay?.add(exchange);
    if (!isLost(exchange)) return;
    server.lost++;
    addPort(server, exchange.client.port);
  }
}

const newServer = (address: string): ServerView => new ServerView(address);
const newReplay = (): BucketReplay => new BucketReplay();
const newQuestions = (): EqualQuestions => new EqualQuestions();
const newLine = (): WaitingLine => new WaitingLine();

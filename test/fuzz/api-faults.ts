/**
 * Tests a source of Kubernetes objects in virtual time, against an API server with every possible fault, while objects
 * change. After each quiet period, all answers equal those of a server that lists the cluster for the first time.
 * During the storm, answers for unchanged objects never disappear.
 *
 *   node test/fuzz/api-faults.ts [--seed N] [--rounds N] [--seconds N]
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { makeLog } from '../../src/server/base/log.ts';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { clusterRecords } from '../../src/server/plugins/kubernetes/control/cluster-records.ts';
import { apiServerSource } from '../../src/server/kube/api/api-server-source.ts';
import type { Access, ApiConnection } from '../../src/server/kube/api/connection.ts';
import { wantedResources, type Resource } from '../../src/server/kube/api/resources.ts';
import type { KubernetesAnswerer } from '../../src/server/plugins/kubernetes/worker/answer.ts';
import type { Fault, Verb } from '../kit/apiserver/faults.ts';
import { everything, quiet } from '../kit/apiserver/rig.ts';
import { ApiServer, namespace, type ApiServerOptions } from '../kit/apiserver/server.ts';
import { Store, type Backup, type KubeJson } from '../kit/apiserver/store.ts';
import { pick } from '../kit/pick.ts';
import {
  answersOf,
  freshAnswers,
  objectsIn,
  plainTruths,
  tell,
  tellAll,
} from './cluster-answers.ts';
import { oddObject, serviceNames, spaces, type OddObject } from './odd-objects.ts';

export interface FaultReport {
  rounds: number;
  steps: number;
  changes: number;
  faults: number;
  restarts: number;
  compared: number;
  /** The longest time until all answers were correct again, in milliseconds of virtual time. */
  slowestMs: number;
}

/** The slowest case is a silently dead watch on a server without bookmarks. */
const CALM_LIMIT_MS = 1_300_000;
const LOOK_MS = 5000;

/** More versions than the changes in one storm. */
const FAR_VERSIONS = 100_000;
const FIRST_VERSION = 1_000_000_000;

const tokens = ['first', 'second'];
const resources = wantedResources(everything);
const plurals = ['namespaces', 'services', 'endpointslices', 'endpoints', 'pods', 'version'];

/** @param limits the number of rounds, or of seconds in real time */
export async function fuzzApiFaults(
  seed: number,
  limits: { readonly rounds?: number; readonly seconds?: number },
): Promise<FaultReport> {
  const end = performance.now() + 1000 * (limits.seconds ?? Infinity);
  const report: FaultReport = {
    rounds: 0,
    steps: 0,
    changes: 0,
    faults: 0,
    restarts: 0,
    compared: 0,
    slowestMs: 0,
  };
  for (let n = 0; n < (limits.rounds ?? Infinity) && performance.now() < end; n++) {
    await using storm = await Storm.begin(seed + n, report);
    for (let calms = 0; calms < 3; calms++) {
      await storm.rage(30 + storm.random.integer(60));
      await storm.calm();
    }
    report.rounds++;
  }
  return report;
}

class Storm {
  readonly random: Random;
  readonly #seed: number;
  readonly #report: FaultReport;
  readonly #clock: VirtualClock;
  readonly #port: number;
  readonly #without: readonly string[];
  readonly #lines: string[] = [];
  readonly #trace: string[] = [];
  #server: ApiServer;
  #token = tokens[0]!;
  #stop: () => Promise<void>;
  #answerer: KubernetesAnswerer;
  #backup: Backup | null = null;
  /** The version numbers have gone back, and the source may not have noticed yet. */
  #wentBack = false;
  #highest = FIRST_VERSION;
  #lowest = FIRST_VERSION;

  private constructor(
    seed: number,
    report: FaultReport,
    clock: VirtualClock,
    server: ApiServer,
    without: readonly string[],
  ) {
    this.#seed = seed;
    this.#clock = clock;
    this.#report = report;
    this.random = seededRandom(seed * 2654435761 + 1);
    this.#server = server;
    this.#port = server.port;
    this.#without = without;
    const bearer = (): string => `Bearer ${this.#token}`;
    const connection: ApiConnection = {
      url: new URL(server.url),
      access: (): Access => ({
        headers: { authorization: bearer() },
        tls: null,
      }),
      refused: () => undefined,
    };
    const source = apiServerSource({
      connection,
      version: 'fuzz',
      wanted: everything,
      reduction: clusterRecords({ podNames: false, outside: false }),
      clock: this.#clock,
      random: this.random,
      log: makeLog((line) => {
        this.#lines.push(line);
        this.#say(line);
      }),
    });
    this.#answerer = answersOf(source, this.#clock);
    this.#stop = () => source.stop();
  }

  static async begin(seed: number, report: FaultReport): Promise<Storm> {
    // In turn: current slices, slices as in Kubernetes 1.20, and no slices.
    const without = [
      [],
      ['discovery.k8s.io/v1'],
      ['discovery.k8s.io/v1', 'discovery.k8s.io/v1beta1'],
    ];
    const chosen = without[seed % 5 < 3 ? 0 : (seed % 5) - 2]!;
    const store = new Store(10_000, FIRST_VERSION);
    furnish(store);
    const clock = new VirtualClock();
    const server = await ApiServer.start({ clock, store, without: chosen, tokens: [tokens[0]!] });
    return new Storm(seed, report, clock, server, chosen);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = this.#stop();
    await this.#server.stop();
    await this.#clock.advance(60_000);
    await stopped;
  }

  /** Makes random changes and faults. */
  async rage(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.#report.steps++;
      for (let n = this.random.integer(4); n > 0; n--) this.#change();
      if (this.random.integer(3) === 0) await this.#fail();
      await this.#clock.advance(pick(this.random, [0, 10, 100, 1000, 5000, 30_000]));
      await quiet(2);
      if (this.#known) this.#pinned();
    }
  }

  /** Without faults, every answer becomes correct again. */
  async calm(): Promise<void> {
    this.#say('calm');
    this.#server.faults.clear();
    this.#server.tokens = [this.#token];
    const begun = this.#clock.now();
    const expected = freshAnswers(
      objectsIn(resources, this.#form, (one) => this.#server.store.all(this.#storage(one))),
    );
    for (;;) {
      await this.#clock.advance(LOOK_MS);
      await quiet(3);
      const answers = tellAll(this.#answerer);
      const wrong = [...expected].filter(([question, answer]) => answers.get(question) !== answer);
      if (wrong.length === 0) break;
      if (this.#clock.now() - begun > CALM_LIMIT_MS) {
        const [question, answer] = wrong[0]!;
        assert.fail(
          `seed ${this.#seed}: ${wrong.length} answers stay wrong; ${question}: ${answers.get(question)}, should be ${answer}\n${this.#trace.slice(-60).join('\n')}`,
        );
      }
    }
    this.#known = true;
    this.#wentBack = false;
    for (const [question, truth] of plainTruths(this.#server.store)) {
      const answer = expected.get(question);
      assert.equal(answer, truth, `seed ${this.#seed}: ${question}`);
      this.#report.compared++;
    }
    for (const [question, answer] of expected) {
      const records = answer.split(' + ')[0]!.split(' | ');
      assert.equal(
        new Set(records).size,
        records.length,
        `${question} holds a record twice: ${answer}`,
      );
    }
    this.#report.compared += expected.size;
    this.#report.slowestMs = Math.max(this.#report.slowestMs, this.#clock.now() - begun);
    const bug = this.#lines.find((line) => line.startsWith('[ERROR]'));
    assert.equal(bug, undefined, `seed ${this.#seed}`);
  }

  /** True once everything has been listed. */
  #known = false;

  /** Checks that unchanged objects are always answered. */
  #pinned(): void {
    const wanted: Record<string, string> = {
      'pinned.kept.svc.cluster.local. A': 'NOERROR pinned.kept.svc.cluster.local. 1 10.0.9.1 + ',
      'bare.kept.svc.cluster.local. A':
        'NOERROR bare.kept.svc.cluster.local. 1 10.1.9.1 | bare.kept.svc.cluster.local. 1 10.1.9.2 + ',
      '2.9.1.10.in-addr.arpa. PTR':
        'NOERROR 2.9.1.10.in-addr.arpa. 12 10-1-9-2.bare.kept.svc.cluster.local. + ',
    };
    for (const [question, answer] of Object.entries(wanted)) {
      const [name, type] = question.split(' ') as [string, string];
      const got = tell(this.#answerer, name, type);
      assert.equal(
        got,
        answer,
        `seed ${this.#seed}: ${question}\n${this.#trace.slice(-30).join('\n')}`,
      );
      this.#report.compared++;
    }
  }

  #change(): void {
    this.#report.changes++;
    const { plural, object } = oddObject(this.random);
    const { namespace: of = '', name } = object.metadata;
    if (this.random.integer(3) === 0) {
      this.#server.delete(plural, of, name);
      // Deleted and immediately recreated, as in a rollout.
      if (this.random.integer(2) === 0) this.#server.put(plural, object);
    } else this.#server.put(plural, object);
  }

  async #fail(): Promise<void> {
    this.#report.faults++;
    const { random } = this;
    const server = this.#server;
    switch (random.integer(15)) {
      case 0:
        this.#say('drop watches');
        return server.dropWatches(random.integer(2) === 0 ? undefined : pick(random, plurals));
      case 1:
        this.#say('freeze watches');
        return server.freezeWatches(random.integer(2) === 0 ? undefined : pick(random, plurals));
      case 2: {
        const code = pick(random, [410, 500, 504, 429, 403]);
        this.#say(`ERROR event ${code}`);
        return server.failWatches(code, 'injected');
      }
      case 3:
        this.#say('compact');
        return server.compact();
      case 4:
        for (const watch of server.watches) watch.bookmark();
        return;
      case 5: {
        const text = pick(random, [
          '{"type":"ADDED","object":{"metadata":{"name":"cut',
          'not json\n',
          '{"type":"SOMETHING","object":{}}\n',
          '{"type":"ADDED","object":null}\n',
          '{"type":"ADDED","object":{"metadata":{}}}\n',
          '{}\n',
          '[]\n',
          'null\n',
          '{"type":"BOOKMARK","object":{"metadata":{}}}\n',
          '\n\n',
        ]);
        this.#say(`raw ${text.trim()}`);
        for (const watch of server.watches) {
          watch.raw(text);
          watch.end();
        }
        return;
      }
      case 6:
        return this.#rotate();
      case 7:
      case 8:
        return this.#restart();
      case 9:
        return this.#restore();
      default: {
        const rule = {
          fault: this.#fault(),
          ...(random.integer(2) === 0 ? { resource: pick(random, plurals) } : {}),
          ...(random.integer(2) === 0
            ? { verb: pick<Verb>(random, ['list', 'watch', 'get']) }
            : {}),
          times: 1 + random.integer(6),
        };
        this.#say(`fault ${JSON.stringify(rule)}`);
        server.faults.add(rule);
      }
    }
  }

  /**
   * Takes a backup, or restores the database to the last one. That one is far back, because the versions of a real
   * cluster advance continuously. After a backup, versions continue above those of any earlier database: if two states
   * shared a version, no client could detect the restore. A restored database does not reach those versions within
   * minutes, while a watch waits for a future version.
   */
  #restore(): void {
    const { store } = this.#server;
    if (this.#backup === null) {
      if (this.#wentBack) return;
      this.#say('backup');
      this.#backup = store.backup();
      store.skip(this.#above() - store.revision);
      store.compact();
    } else {
      this.#say(`restore from ${store.revision} to ${this.#backup.revision}`);
      this.#server.restore(this.#backup);
      this.#backup = null;
      this.#wentBack = true;
    }
  }

  #fault(): Fault {
    const { random } = this;
    const afterBytes = random.integer(2000);
    switch (random.integer(7)) {
      case 0:
      case 1: {
        const status = pick(random, [400, 401, 403, 410, 422, 429, 429, 500, 502, 503, 504, 302]);
        const after = pick(random, ['0', '1', '30', '100000', 'soon', '-5']);
        return {
          kind: 'status',
          status,
          ...(random.integer(2) === 0 ? { headers: { 'retry-after': after } } : {}),
          ...(random.integer(4) === 0
            ? { body: pick(random, ['', '<html>', '{', 'null', '[]']) }
            : {}),
        };
      }
      case 2:
        return { kind: 'drop' };
      case 3:
        return { kind: 'drop', afterBytes };
      case 4:
        return { kind: 'hang' };
      case 5:
        return { kind: 'stall', afterBytes };
      default:
        return { kind: 'garbage' };
    }
  }

  /** Replaces the token, first on the server and then, when the kubelet would update it, on the client. */
  #rotate(): void {
    const next = tokens[(tokens.indexOf(this.#token) + 1) % tokens.length]!;
    this.#say(`token ${next}`);
    this.#server.tokens = this.random.integer(2) === 0 ? [next] : [...tokens];
    this.#clock.after(this.random.integer(20_000), () => {
      this.#token = next;
      this.#server.tokens = [...tokens];
    });
  }

  /** Brings the server back with the same state, or with that of a backup, whose versions are old. */
  async #restart(): Promise<void> {
    const { random } = this;
    this.#report.restarts++;
    let { store } = this.#server;
    const lost = random.integer(3) === 0;
    if (lost) {
      const kept = store;
      store = new Store(10_000, random.integer(2) === 0 ? this.#above() : this.#below());
      furnish(store);
      for (const plural of ['namespaces', 'services', 'endpoints', 'pods']) {
        for (const { object } of kept.all(plural)) {
          if (random.integer(4) > 0) store.put(plural, object);
        }
      }
      const slices = 'endpointslices.discovery.k8s.io';
      for (const { object } of kept.all(slices)) store.put(slices, object);
    }
    const options: ApiServerOptions = {
      clock: this.#clock,
      store,
      port: this.#port,
      tokens: this.#server.tokens ?? [],
      without: this.#without,
      minor: pick(random, [20, 26, 27, 31, 33]),
      pagesFromCache: random.integer(2) === 0,
      ...(random.integer(2) === 0 ? { streamingLists: random.integer(2) === 0 } : {}),
    };
    this.#say(
      `restart ${lost ? 'from a backup' : ''} ${JSON.stringify({ ...options, store: '', clock: '' })}`,
    );
    await this.#server.stop();
    await this.#clock.advance(random.integer(3000));
    this.#server = await ApiServer.start(options);
  }

  /** A version far above any that a database has reached during this storm. */
  #above(): number {
    this.#highest = Math.max(this.#highest, this.#server.store.revision) + FAR_VERSIONS;
    return this.#highest;
  }

  #below(): number {
    this.#wentBack = true;
    return (this.#lowest -= FAR_VERSIONS);
  }

  #form = (resource: Resource): number =>
    resource.kind === 'EndpointSlice' ? this.#without.length : 0;

  #storage(resource: Resource): string {
    if (resource.kind !== 'EndpointSlice') return resource.forms[0]!.name;
    return this.#without.length === 2 ? 'endpoints' : 'endpointslices.discovery.k8s.io';
  }

  #say(line: string): void {
    this.#trace.push(`${(this.#clock.now() / 1000).toFixed(1)} ${line}`);
    if (process.env['NDOTS_FUZZ_TRACE'] !== undefined) console.log(this.#trace.at(-1));
  }
}

/** Objects that exist from the start and never change. */
function furnish(store: Store): void {
  const put = (plural: OddObject['plural'], object: KubeJson): void => {
    store.put(plural === 'endpointslices' ? 'endpointslices.discovery.k8s.io' : plural, object);
  };
  for (const name of [...spaces, 'kept']) put('namespaces', namespace(name));
  const kept = (name: string, labels = {}): KubeJson['metadata'] => ({
    name,
    namespace: 'kept',
    labels,
  });
  put('services', { metadata: kept('pinned'), spec: { clusterIP: '10.0.9.1', ports: [] } });
  put('services', { metadata: kept('bare'), spec: { clusterIP: 'None', ports: [] } });
  const addresses = ['10.1.9.1', '10.1.9.2'];
  put('endpointslices', {
    metadata: kept('bare-x', { 'kubernetes.io/service-name': 'bare' }),
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [],
  });
  put('endpoints', {
    metadata: kept('bare'),
    subsets: [{ addresses: addresses.map((ip) => ({ ip })) }],
  });
  // More than a page, so that lists arrive in several.
  for (let n = 0; n < 600; n++) {
    put('services', {
      metadata: { name: `f${n}`, namespace: 'kept' },
      spec: { clusterIP: `10.2.${n >> 8}.${n & 255}` },
    });
  }
  assert.ok(serviceNames.length > 0);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { rounds: { type: 'string' }, seconds: { type: 'string' }, seed: { type: 'string' } },
  });
  const seed =
    values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  console.log(`seed ${seed}`);
  const report = await fuzzApiFaults(seed, {
    rounds: Number(values.rounds ?? Infinity),
    seconds: Number(values.seconds ?? (values.rounds ? Infinity : 60)),
  });
  console.log(JSON.stringify(report));
}

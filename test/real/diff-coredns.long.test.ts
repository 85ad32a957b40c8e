import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { parseCorefileText, parseStartedCorefile } from '../../src/faces/cli/parse-corefile.ts';
import { Problems } from '../../src/server/base/problem.ts';
import { loadPlugins } from '../../src/server/plugins/order.ts';
import { withBoth } from '../../src/tools/diff/both-sides.ts';
import { compare, type Comparison } from '../../src/tools/diff/compare.ts';
import { prepare } from '../../src/tools/diff/prepare.ts';
import type { DiffQuestion } from '../../src/tools/diff/question.ts';
import { ApiServer } from '../kit/apiserver/server.ts';
import { changes } from '../kit/diff/changes.ts';
import { clusterObjects } from '../kit/diff/objects.ts';
import { RealServer, RealSide, ScriptedUpstreams } from '../kit/diff/real-side.ts';
import { corednsPath } from '../kit/etcd.ts';

/**
 * Makes random single changes to installers' Corefiles. Compares the report of `ndots diff` with two CoreDNS servers,
 * one before and one after the change, that receive the same queries. `DIFF_CHANGES` sets the number of changes and
 * `DIFF_SEED` the seed.
 */

const program = corednsPath();
const wanted = Number(process.env['DIFF_CHANGES'] ?? '200');
const seed = Number(process.env['DIFF_SEED'] ?? '1');

/**
 * In milliseconds. A change takes three seconds, so that answers age, and its questions are sent to four servers. On a
 * busy machine, it takes longer.
 */
const EACH_MS = 20_000;

/** Plugins that do not affect answers but would need separate ports. */
const beside = /^ +(?:health|ready|prometheus|loop|reload|pprof|bind)\b.*?(?:\{[^}]*\}\n|\n)/gm;

/** An installer's Corefile with this test's upstreams and ports. */
function base(name: string, api: string): string {
  return readFileSync(`test/corefiles/${name}.corefile`, 'utf8')
    .replace(beside, '')
    .replaceAll(/^ +import .*\n|^import .*\n|^#.*\n/gm, '')
    .replaceAll(/(:53|:5353)(?= |\n)(?=[^\n]*\{)/g, ':5300')
    .replaceAll(/forward \. [^{\n]*/g, 'forward . 127.50.0.1 ')
    .replaceAll(/hosts \S+NodeHosts/g, 'hosts /dev/null')
    .replaceAll(/^( +kubernetes [^\n{]*\{)/gm, `$1\n        endpoint ${api}\n        ttl 30`);
}

const bases = [
  'kubeadm',
  'k3s',
  'eks',
  'aks',
  'openshift',
  'helm-chart',
  'node-local-dns',
] as const;

describe(
  'random single changes',
  { skip: program === null && 'CoreDNS is not there (COREDNS=FILE)' },
  () => {
    let upstreams: ScriptedUpstreams;
    let api: ApiServer;
    let directory: string;
    before(async () => {
      upstreams = await ScriptedUpstreams.start(['127.50.0.1', '127.50.0.2', '127.50.0.3']);
      api = await ApiServer.start();
      directory = mkdtempSync(join(tmpdir(), 'ndots-diff-objects-'));
      for (const { plural, object } of clusterObjects)
        api.put(plural, structuredClone(object) as never);
      const items = clusterObjects.map(({ object }) => object);
      writeFileSync(
        join(directory, 'all.json'),
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      );
    });
    after(async () => {
      upstreams?.stop();
      await api?.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    const named = (text: string) => ({ file: 'Corefile', directory, text });

    /** A change and the report of `ndots diff`, or null if the result cannot be served. */
    async function judged(before: string, later: string): Promise<Judged | null> {
      const common = {
        ...{ manifests: directory, names: [], env: {} },
        ...{ plugins: loadPlugins, parse: parseStartedCorefile },
      };
      try {
        const found = await withBoth(named(before), named(later), common, async (a, b, asked) => {
          const questions = asked.questions.filter(isSteady);
          return { before, later, questions, ours: await compare(a, b, questions, moments) };
        });
        return found instanceof Problems ? null : found;
      } catch (error) {
        if (error instanceof Problems) return null;
        throw error;
      }
    }

    const sideAt = (text: string, port: number): RealSide => {
      const { corefile } = parseCorefileText({ file: 'Corefile', text, dnsPort: 53, env: {} });
      return new RealSide(port, upstreams, prepare(corefile, directory).upstreams);
    };

    /** CoreDNS's behaviour for each change, except those that it refuses. */
    async function real(
      batch: readonly Judged[],
    ): Promise<readonly (Judged & { readonly theirs: Comparison })[]> {
      const texts = batch.flatMap(({ before, later }, index) => [
        before.replaceAll(':5300', `:${6000 + 2 * index}`),
        later.replaceAll(':5300', `:${6001 + 2 * index}`),
      ]);
      const server = await RealServer.start(program!, texts);
      if (server === null) {
        if (batch.length === 1) return [];
        const half = batch.length >> 1;
        return [...(await real(batch.slice(0, half))), ...(await real(batch.slice(half)))];
      }
      try {
        const found = [];
        for (const [index, each] of batch.entries()) {
          const [one, two] = [
            sideAt(each.before, 6000 + 2 * index),
            sideAt(each.later, 6001 + 2 * index),
          ];
          found.push({ ...each, theirs: await compare(one, two, each.questions, moments) });
        }
        return found;
      } finally {
        await server.stop();
      }
    }

    const kinds = ({ classes }: Comparison): string =>
      [...new Set(classes.map(({ kind }) => kind))].join(' ');

    const title = `${wanted} of them: what changes for CoreDNS is found, and nothing else`;
    test(title, { timeout: wanted * EACH_MS }, async (t) => {
      const random = seededRandom(seed);
      const disagreed: string[] = [];
      let [total, changed, sameKinds] = [0, 0, 0];
      for (let rounds = 0; total < wanted && rounds < wanted; rounds++) {
        const batch: Judged[] = [];
        for (
          let tries = 0;
          batch.length < Math.min(BATCH, wanted - total) && tries < 200;
          tries++
        ) {
          const text = base(bases[random.integer(bases.length)]!, api.url);
          const other = changes[random.integer(changes.length)]!(text, random);
          const one = other === null || other === text ? null : await judged(text, other);
          if (one !== null) batch.push(one);
        }
        for (const { before: first, later, ours, theirs } of await real(batch)) {
          total++;
          if (theirs.classes.length > 0) changed++;
          if (kinds(ours) === kinds(theirs)) sameKinds++;
          if (ours.classes.length > 0 === theirs.classes.length > 0) continue;
          const who = ours.classes.length > 0 ? 'only ndots' : 'only CoreDNS';
          const witness = (ours.classes[0] ?? theirs.classes[0])?.witness;
          const line = `${who}: ${lineChange(first, later)}\n    ${JSON.stringify(witness)}`;
          disagreed.push(line);
          t.diagnostic(line);
        }
      }
      t.diagnostic(
        `${total} changes, ${changed} of which change an answer of CoreDNS; of the same kinds for ${sameKinds}`,
      );
      assert.ok(total >= wanted);
      assert.deepEqual(disagreed, []);
    });
  },
);

/** Long enough for TTLs to show their age, and shorter than the shortest of them. */
const moments = { againMs: 3000, later: false } as const;

/**
 * Excludes IPv6 clients, which the upstreams here do not support, and truncated replies, which include random records.
 */
function isSteady({ client, name, udpSize }: DiffQuestion): boolean {
  return !client.includes(':') && (!name.startsWith('large-') || udpSize >= 1232);
}

/** A change and the report of `ndots diff`. */
interface Judged {
  readonly before: string;
  readonly later: string;
  readonly questions: readonly DiffQuestion[];
  readonly ours: Comparison;
}

/** The number of changes per CoreDNS process, because its startup takes most of the time. */
const BATCH = 10;

function lineChange(before: string, later: string): string {
  const [old, now] = [before.split('\n'), later.split('\n')];
  const gone = old.filter((line) => !now.includes(line)).map((line) => `-${line.trim()}`);
  const come = now.filter((line) => !old.includes(line)).map((line) => `+${line.trim()}`);
  return [...gone, ...come].join(' ');
}

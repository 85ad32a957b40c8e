/**
 * A directory of manifests that people, editors and kubelet change in every way at once. After each check, the answers
 * must match the last good content of each existing file.
 *
 *   node test/fuzz/manifest-edits.ts [--seed N] [--seconds N]
 */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeLog } from '../../src/server/base/log.ts';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { clusterRecords } from '../../src/server/plugins/kubernetes/control/cluster-records.ts';
import { manifestSource } from '../../src/server/kube/manifests/manifest-directory.ts';
import type { KubernetesAnswerer } from '../../src/server/plugins/kubernetes/worker/answer.ts';
import { everything } from '../kit/apiserver/rig.ts';
import { answersOf, tell } from './cluster-answers.ts';
import { pick } from '../kit/pick.ts';

export interface EditReport {
  directories: number;
  edits: number;
  compared: number;
}

/** Each service belongs to exactly one file, so the state is the union of all files. */
interface Content {
  readonly text: string;
  /** Maps a service to its address, or null if the previous content stays in effect. */
  readonly services: ReadonlyMap<string, string> | null;
}

const files = ['a.yaml', 'b.yml', 'c.json', 'sub/d.yaml'];

export async function fuzzManifestEdits(seed: number, seconds: number): Promise<EditReport> {
  const end = performance.now() + 1000 * seconds;
  const report: EditReport = { directories: 0, edits: 0, compared: 0 };
  for (let n = 0; performance.now() < end; n++) {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-edits-'));
    try {
      await new Edits(seed + n, directory, report).run(60);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
    report.directories++;
  }
  return report;
}

class Edits {
  readonly #seed: number;
  readonly #random: Random;
  readonly #report: EditReport;
  readonly #directory: string;
  readonly #clock = new VirtualClock();
  readonly #log: string[] = [];
  /** Maps a file name to the services in the file's last good content. */
  readonly #truth = new Map<string, ReadonlyMap<string, string>>();
  #mounted = 0;
  #serial = 0;

  constructor(seed: number, base: string, report: EditReport) {
    this.#seed = seed;
    this.#random = seededRandom(seed * 2654435761 + 1);
    this.#report = report;
    this.#directory = join(base, 'manifests');
  }

  async run(steps: number): Promise<void> {
    mkdirSync(join(this.#directory, 'sub'), { recursive: true });
    for (const file of files) this.#write(file, this.#good(file));
    this.#mount();
    const source = manifestSource({
      directory: this.#directory,
      wanted: everything,
      reduction: clusterRecords({ podNames: false, outside: false }),
      clock: this.#clock,
      log: makeLog((line) => this.#log.push(line)),
    });
    const answerer = answersOf(source, this.#clock);
    this.#compare(answerer, 'at first');
    for (let step = 0; step < steps; step++) {
      this.#report.edits++;
      const done = await this.#edit(answerer);
      await this.#clock.advance(1000);
      this.#compare(answerer, done);
    }
    await source.stop();
  }

  async #edit(answerer: KubernetesAnswerer): Promise<string> {
    const random = this.#random;
    const file = pick(random, files);
    const path = join(this.#directory, file);
    switch (random.integer(9)) {
      case 0:
        rmSync(path, { force: true });
        this.#truth.delete(file);
        return `${file} deleted`;
      case 1: {
        // The way editors save: a new file is renamed over the old one.
        const good = this.#good(file);
        writeFileSync(join(this.#directory, '.new'), good.text);
        renameSync(join(this.#directory, '.new'), path);
        this.#truth.set(file, good.services!);
        return `${file} replaced`;
      }
      case 2:
        this.#mount();
        return 'mounted files swapped';
      case 3: {
        if (!this.#truth.has(file)) return 'nothing';
        truncateSync(path, 0);
        await this.#clock.advance(1000);
        // An empty file is valid and contains no objects.
        this.#truth.set(file, new Map());
        this.#compare(answerer, `${file} truncated`);
        this.#write(file, this.#good(file));
        return `${file} truncated and written`;
      }
      case 4: {
        // The directory is temporarily missing. Nothing may change during that time.
        renameSync(this.#directory, `${this.#directory}.away`);
        await this.#clock.advance(3000);
        this.#compare(answerer, 'directory gone');
        renameSync(`${this.#directory}.away`, this.#directory);
        return 'directory back';
      }
      case 5: {
        writeFileSync(join(this.#directory, 'notes.txt'), 'kind: Service');
        mkdirSync(join(this.#directory, 'dir.yaml'), { recursive: true });
        return 'other things';
      }
      case 6:
      case 7: {
        // Only includes files that were valid before. The valid parts of a new bad file also count, but another test
        // checks that.
        if (!this.#truth.has(file)) return 'nothing';
        this.#write(file, pick(random, [half, binary, huge, bombs, wrong])(this.#good(file)));
        return `${file} broken`;
      }
      default:
        this.#write(file, this.#good(file));
        return `${file} written`;
    }
  }

  /**
   * Mounts files the way the kubelet does for a ConfigMap: as symlinks into `..data`, itself a symlink that gets
   * swapped.
   */
  #mount(): void {
    const version = `..v${++this.#mounted}`;
    const good = this.#good('mounted.yaml');
    mkdirSync(join(this.#directory, version));
    writeFileSync(join(this.#directory, version, 'mounted.yaml'), good.text);
    symlinkSync(version, join(this.#directory, '..data_tmp'));
    renameSync(join(this.#directory, '..data_tmp'), join(this.#directory, '..data'));
    if (this.#mounted === 1)
      symlinkSync('..data/mounted.yaml', join(this.#directory, 'mounted.yaml'));
    else rmSync(join(this.#directory, `..v${this.#mounted - 1}`), { recursive: true });
    this.#truth.set('mounted.yaml', good.services!);
  }

  #write(file: string, { text, services }: Content): void {
    writeFileSync(join(this.#directory, file), text);
    if (services !== null) this.#truth.set(file, services);
  }

  #good(file: string): Content {
    const services = new Map<string, string>();
    const count = this.#random.integer(10) === 0 ? 100 : this.#random.integer(4);
    const own = file.replace(/\W/g, '');
    for (let n = 0; n < count; n++) {
      const address = ++this.#serial;
      services.set(`${own}-${n}`, `10.96.${address >> 8}.${address & 255}`);
    }
    const objects = [...services].map(([name, clusterIP]) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'default' },
      spec: { clusterIP, ports: [{ port: 80 }] },
    }));
    const text = file.endsWith('.json')
      ? JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
      : objects.map((object) => `---\n${JSON.stringify(object, null, 1)}\n`).join('');
    return { text, services };
  }

  #compare(answerer: KubernetesAnswerer, when: string): void {
    for (const file of [...files, 'mounted.yaml']) {
      const own = file.replace(/\W/g, '');
      for (let n = 0; n < 5; n++) {
        const name = `${own}-${n}.default.svc.cluster.local.`;
        const address = this.#truth.get(file)?.get(`${own}-${n}`);
        const wanted = address === undefined ? 'NXDOMAIN  + ' : `NOERROR ${name} 1 ${address} + `;
        const message = (): string =>
          `seed ${this.#seed}, ${when}: ${name}\n${this.#log.slice(-5).join('\n')}`;
        const got = tell(answerer, name, 'A');
        if (got !== wanted) assert.equal(got, wanted, message());
        this.#report.compared++;
      }
    }
  }
}

const half = ({ text }: Content): Content => ({
  text: `${text}\n---\n{"kind": "Service", "metadata": {"na`,
  services: null,
});
const binary = (): Content => ({
  text: Buffer.from(Array.from({ length: 4000 }, (_, n) => (n * 7919) & 255)).toString('latin1'),
  services: null,
});
const huge = ({ text }: Content): Content => ({
  text: `${text}\n# ${'x'.repeat(17 * 1024 * 1024)}\n`,
  services: null,
});
const bombs = (): Content => ({
  text: `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
    .split('')
    .map((key, at) => `${key}: &${key} [${Array(9).fill(`*${'abcdefgh'[at]}`).join(',')}]`)
    .join('\n')}\nkind: Service\nmetadata: {name: *i}\n`,
  services: null,
});
const wrong = (): Content => ({
  text: 'kind: Service\nmetadata: {name: 7}\nspec: {clusterIP: nowhere}\n',
  services: null,
});

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seconds: { type: 'string' }, seed: { type: 'string' } },
  });
  const seed =
    values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  console.log(`seed ${seed}`);
  console.log(JSON.stringify(await fuzzManifestEdits(seed, Number(values.seconds ?? 60))));
}

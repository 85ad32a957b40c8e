/**
 * A node's images, all built on this machine: the control plane, CoreDNS, ndots from its two Dockerfiles, and clients.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { realClient } from '../../src/tools/lab/real-clients.ts';
import { Image, type ImageConfig } from '../kit/image.ts';
import { plainConfig, runTar, writeArchive, type NodeImage } from './image-archive.ts';
import { cacheDirectory } from './leftovers.ts';
import { KUBERNETES_VERSION, type NodePrograms } from './node-programs.ts';
import { say } from './progress.ts';

/** The ndots image, with a second tag for upgrades that only change the name. */
export const NDOTS_IMAGES = ['ndots:0.1.0', 'ndots:0.1.1'] as const;
/** The image that has all subcommands. */
export const TOOLS_IMAGE = 'ndots-tools:0.1.0';
/** The same for the node cache. */
export const NODE_CACHE_IMAGES = ['ndots-node-cache:0.1.0', 'ndots-node-cache:0.1.1'] as const;
/** The CoreDNS image, tagged with its version. */
export const COREDNS_IMAGE = 'registry.k8s.io/coredns/coredns:v1.14.7';
/** The client image: `lookup-glibc`, `lookup-musl`, `lookup-go` (src/tools/lab/clients), curl and dig. */
export const CLIENT_IMAGE = 'client:1';

/**
 * The Debian packages in the images: those in Node's image (`node:26-slim`), those that the node cache and kube-proxy
 * need, and the clients'.
 */
const debian = [
  ...['ca-certificates', 'libstdc++6', 'libatomic1'],
  ...['iptables', 'nftables', 'iproute2', 'conntrack', 'ipset', 'kmod'],
  ...['bind9-dnsutils', 'curl', 'procps'],
];

/** The archive with all images, and the name of the image for pods' sandbox containers. */
export interface NodeArchive {
  readonly file: string;
  readonly sandbox: string;
}

/** Writes the archive to a node's directory. Layers are taken from the cache or built. */
export async function nodeImages(programs: NodePrograms, directory: string): Promise<NodeArchive> {
  const listed = spawnSync(
    programs.kubeadm,
    ['config', 'images', 'list', '--kubernetes-version', KUBERNETES_VERSION],
    { encoding: 'utf8' },
  );
  const named = (part: string): string => {
    const name = listed.stdout.split('\n').find((line) => line.includes(`/${part}:`));
    if (name === undefined) throw new Error(`kubeadm names no image ${part}: ${listed.stderr}`);
    return name;
  };
  const base = await layer('debian', `${release()} ${debian.join(' ')}`, makeDebian);
  const program = (name: keyof NodePrograms, at: string, setcap = ''): Promise<string> =>
    programLayer(name, { [at]: programs[name] }, setcap);
  const images: NodeImage[] = [];
  for (const name of [
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'etcd',
  ] as const)
    images.push({
      tags: [named(name)],
      layers: [await program(name, `usr/local/bin/${name}`)],
      config: plainConfig([name]),
    });
  images.push({
    tags: [named('kube-proxy')],
    layers: [base, await program('kube-proxy', 'usr/local/bin/kube-proxy')],
    config: plainConfig(['kube-proxy']),
  });
  images.push({
    tags: [...new Set([named('coredns'), COREDNS_IMAGE])],
    layers: [base, await program('coredns', 'coredns', 'cap_net_bind_service=+ep')],
    config: plainConfig(['/coredns'], [], '65532:65532'),
  });
  images.push({
    tags: [CLIENT_IMAGE],
    layers: [base, await programLayer('clients', await clientPrograms(), '')],
    config: plainConfig([], ['sleep', 'infinity']),
  });
  const sandbox = named('pause');
  images.push({ tags: [sandbox], layers: [base], config: plainConfig(['sleep', 'infinity']) });
  const [tools, server] = await dockerfileLayers('deploy/Dockerfile', ['tools', 'server']);
  const [nodeCache] = await dockerfileLayers('deploy/node-cache/Dockerfile', ['node-cache']);
  for (const [tags, { file, config, hasBase }] of [
    [[TOOLS_IMAGE], tools!],
    [NDOTS_IMAGES, server!],
    [NODE_CACHE_IMAGES, nodeCache!],
  ] as const)
    images.push({ tags, layers: hasBase ? [base, file] : [file], config });
  const links = join(directory, 'archive');
  mkdirSync(links);
  const file = join(directory, 'images.tar');
  say('writing the archive of images');
  await writeArchive(images, links, file);
  rmSync(links, { recursive: true });
  return { file, sandbox };
}

/**
 * A layer from the cache, which is built if it is missing.
 * @param about describes its contents and is used as the cache key
 */
async function layer(
  name: string,
  about: string,
  make: (file: string) => Promise<void>,
): Promise<string> {
  const layers = join(cacheDirectory(), 'layers');
  const id = createHash('sha256').update(about).digest('hex').slice(0, 12);
  const file = join(layers, `${name}-${id}.tar`);
  if (existsSync(file)) return file;
  mkdirSync(layers, { recursive: true });
  say(`making the layer ${name} (once, kept in ${layers})`);
  const unfinished = `${file}.${process.pid}`;
  try {
    await make(unfinished);
    renameSync(unfinished, file);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return file;
}

/**
 * This machine's Debian release, because compiled programs need its C library. On other systems, it is the release used
 * in Node's images.
 */
function release(): string {
  const text = readFileSync('/etc/os-release', 'utf8');
  return (
    (/^ID=debian$/m.test(text) ? /^VERSION_CODENAME=(\w+)$/m.exec(text)?.[1] : null) ?? 'bookworm'
  );
}

async function makeDebian(file: string): Promise<void> {
  const child = spawn(
    'mmdebstrap',
    [
      ...['--quiet', '--mode=root', '--variant=minbase', '--format=tar'],
      ...[`--include=${debian.join(',')}`, release(), file],
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`mmdebstrap ended with ${String(code)}`);
}

/**
 * @param files maps a path in the image to the program
 * @param capability the capability that each of them gets, or `''` for none
 */
function programLayer(
  name: string,
  files: Readonly<Record<string, string>>,
  capability: string,
): Promise<string> {
  const about = Object.entries(files).map(([at, from]) => {
    const { size, mtimeMs } = statSync(from);
    return [at, from, size, mtimeMs].join(' ');
  });
  return layer(name, `${about.join('\n')} ${capability}`, async (file) => {
    const directory = mkdtempSync(join(cacheDirectory(), 'layer-'));
    try {
      // CoreDNS writes to /tmp, and containerd creates the sandbox's directories.
      for (const [at, from] of Object.entries(files)) {
        const to = join(directory, at);
        mkdirSync(dirname(to), { recursive: true });
        copyFileSync(from, to);
        chmodSync(to, 0o755);
        if (capability !== '' && spawnSync('setcap', [capability, to]).status !== 0)
          throw new Error(`setcap ${capability} failed`);
      }
      const owner = ['--owner=0', '--group=0', '--numeric-owner', '--format=pax'];
      const attributes = ['--xattrs', '--xattrs-include=security.capability'];
      await runTar(['--create', '--file', file, ...owner, ...attributes, '-C', directory, '.']);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
}

/** The lab's clients, compiled on this machine. */
async function clientPrograms(): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const name of ['glibc', 'musl', 'go']) {
    const { words, missing } = await realClient(name, process.env as Record<string, string>);
    if (words === null) throw new Error(`the client ${name} ${missing}`);
    found[`usr/local/bin/lookup-${name}`] = words[0]!;
  }
  return found;
}

interface StageLayer {
  readonly file: string;
  readonly config: ImageConfig;
  /** True if the layer is applied on top of the Debian layer. */
  readonly hasBase: boolean;
}

/**
 * Runs a Dockerfile's steps, or runs them again if a file that they may copy has changed. Returns one layer per stage.
 */
async function dockerfileLayers(
  dockerfile: string,
  stages: readonly string[],
): Promise<StageLayer[]> {
  const hash = createHash('sha256').update(process.version);
  const inputs = globSync(
    [
      ...['{src,tools,docs,examples}/**/*', 'deploy/{Dockerfile,ndots,server-root.sh}'],
      ...['deploy/node-cache/**/*', 'package*.json', 'tsconfig.json', '.npmrc'],
    ],
    { exclude: (name) => name.endsWith('.test.ts') },
  );
  for (const name of inputs.toSorted())
    if (statSync(name).isFile()) hash.update(`${name}\0`).update(readFileSync(name));
  const about = hash.digest('hex');
  let image: Image | null = null;
  const built: StageLayer[] = [];
  try {
    for (const stage of stages) {
      const file = await layer(`ndots-${stage}`, `${dockerfile} ${about}`, async (to) => {
        if (image === null) {
          say(`playing the steps of ${dockerfile}: minutes`);
          image = await Image.build(dockerfile);
        }
        image.use(stage);
        writeFileSync(`${to}.json`, JSON.stringify(image.exportLayer(to)));
        renameSync(`${to}.json`, `${to.replace(/\.\d+$/, '')}.json`);
      });
      const described = JSON.parse(readFileSync(`${file}.json`, 'utf8')) as Omit<
        StageLayer,
        'file'
      >;
      built.push({ file, ...described });
    }
  } finally {
    await (image as Image | null)?.close();
  }
  return built;
}

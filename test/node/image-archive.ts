/** Writes images in the format that containerd imports: a docker archive whose layers are tar files from the cache. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ImageConfig } from '../kit/image.ts';

export interface NodeImage {
  readonly tags: readonly string[];
  /** The layers as tar files, lowest first. */
  readonly layers: readonly string[];
  readonly config: ImageConfig;
}

/** The configuration for a program in its own image. */
export const plainConfig = (
  entrypoint: readonly string[],
  command: readonly string[] = [],
  user = '0:0',
): ImageConfig => ({
  user,
  workdir: '/',
  env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  entrypoint,
  command,
});

/** Maps a file to its SHA-256, because images share layers. */
const digests = new Map<string, string>();

async function digestOf(file: string): Promise<string> {
  const known = digests.get(file);
  if (known !== undefined) return known;
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const digest = hash.digest('hex');
  digests.set(file, digest);
  return digest;
}

/**
 * Writes the archive.
 * @param directory an empty directory where layers are linked, because their paths are absolute
 */
export async function writeArchive(
  images: readonly NodeImage[],
  directory: string,
  file: string,
): Promise<void> {
  const manifest: object[] = [];
  const names = new Set<string>();
  const put = (name: string): string => {
    names.add(name);
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    return join(directory, name);
  };
  for (const { tags, layers, config } of images) {
    const ids = await Promise.all(layers.map(digestOf));
    const body = JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: {
        User: config.user,
        WorkingDir: config.workdir,
        Env: Object.entries(config.env).map(([name, value]) => `${name}=${value}`),
        Entrypoint: config.entrypoint,
        Cmd: config.command,
      },
      // Distinguishes two images with the same contents.
      created: '2026-01-01T00:00:00Z',
      author: tags.join(' '),
      rootfs: { type: 'layers', diff_ids: ids.map((id) => `sha256:${id}`) },
    });
    const config256 = `${createHash('sha256').update(body).digest('hex')}.json`;
    writeFileSync(put(config256), body);
    for (const [at, id] of ids.entries())
      if (!names.has(`${id}/layer.tar`)) symlinkSync(layers[at]!, put(`${id}/layer.tar`));
    manifest.push({
      Config: config256,
      RepoTags: tags,
      Layers: ids.map((id) => `${id}/layer.tar`),
    });
  }
  writeFileSync(put('manifest.json'), JSON.stringify(manifest));
  await runTar(['--create', '--dereference', '--file', file, '--directory', directory, ...names]);
}

/** @throws an error with the command's message if it fails */
export async function runTar(words: readonly string[]): Promise<void> {
  const child = spawn('tar', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  let complaints = '';
  child.stderr.on('data', (text: Buffer) => (complaints += text.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`tar ended with ${String(code)}: ${complaints}`);
}

/** Plays a story: gives it its cluster, and takes it away again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAnswers } from '../resolver/answers-file.ts';
import { Capture, joinCaptures } from './capture.ts';
import { LabCluster, type LabPrograms } from './cluster.ts';
import { INTERNET, usualCorefile, usualNodeResolvConf } from './defaults.ts';
import { LAB_FOLDER } from './files.ts';
import { hasProgram, type SearchPath } from './machine.ts';
import { headOf, type Outcome, type Stage, type Story } from './story.ts';

/** What a performance is given. */
export interface PlayParts extends LabPrograms {
  readonly path: SearchPath;
  /** A file for the packets of all acts, one after the other; null: they are not kept. */
  readonly pcap: string | null;
  /** Called when the story is over and its cluster still stands. */
  linger?(lab: LabCluster): Promise<void>;
}

/** Plays a story in this process's namespaces, which are a lab's (isolation.ts). */
export async function playStory(story: Story, parts: PlayParts): Promise<Outcome> {
  if (story.play === null) throw new Error(`${story.name} has no performance, only a model`);
  const began = performance.now();
  let lab: LabCluster | null = null;
  const files: string[] = [];
  const stage: Stage = {
    server: parts.coredns === null ? 'ndots' : 'CoreDNS',
    ndots: parts.ndots,
    hasProgram: (name) => hasProgram(name, parts.path),
    async start({ objects, internet = [], ...plan }) {
      const folder = join(LAB_FOLDER, 'objects');
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'objects.yaml'), objects);
      lab = await LabCluster.start(
        {
          corefile: usualCorefile,
          nodeResolvConf: usualNodeResolvConf,
          mode: 'iptables',
          ipv6: true,
          ...plan,
          manifests: folder,
          internet: {
            addresses: [INTERNET],
            script: parseAnswers({ delay: 1, rules: internet }, `the internet of ${story.name}`),
          },
        },
        parts,
      );
      return lab;
    },
    async capture(machine, filter, act) {
      const file = join(LAB_FOLDER, `capture-${files.length + 1}.pcap`);
      files.push(file);
      const capture = await Capture.start(machine, file, filter);
      const result = await act();
      return { result, packets: await capture.stop() };
    },
  };
  try {
    const acts = await story.play(stage);
    if (parts.pcap !== null) joinCaptures(files, parts.pcap);
    const tookMs = performance.now() - began;
    if (lab !== null) await parts.linger?.(lab);
    return { story: headOf(story), how: 'real', server: stage.server, acts, tookMs };
  } finally {
    await (lab as LabCluster | null)?.close();
  }
}

/** Plays a story in virtual time. */
export async function modelStory(story: Story): Promise<Outcome | null> {
  if (story.model === null) return null;
  const began = performance.now();
  const acts = await story.model();
  return {
    story: headOf(story),
    how: 'model',
    server: 'ndots',
    acts,
    tookMs: performance.now() - began,
  };
}

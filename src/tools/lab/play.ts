/** Plays a story, starting its cluster and removing it afterwards. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PcapngWriter } from '../capture/read/packets/pcapng.ts';
import type { Frame } from '../capture/read/packets/frame.ts';
import { parseAnswers } from '../resolver/answers-file.ts';
import { Capture } from './capture.ts';
import { LabCluster } from './cluster.ts';
import { INTERNET, usualCorefile, usualNodeResolvConf } from './defaults.ts';
import { LAB_DIRECTORY } from './files.ts';
import type { LabPrograms, RuleMode } from './cluster-plan.ts';
import { headOf, type StoryOutcome, type Stage, type Story } from './story.ts';

export interface PlayParts extends LabPrograms {
  readonly mode: RuleMode;
  /** A file for the packets of all acts, or null to discard them. */
  readonly pcap: string | null;
  /** Called when the story is over, while its cluster is still running. */
  linger?(lab: LabCluster): Promise<void>;
}

/** Plays a story in this process's namespaces, which belong to a lab (isolation.ts). */
export async function playStory(story: Story, parts: PlayParts): Promise<StoryOutcome> {
  if (story.play === null) throw new Error(`${story.name} cannot be played; it has only a model`);
  const began = performance.now();
  let lab: LabCluster | null = null;
  const captures: Capture[] = [];
  /** Captures all client pods from start to finish, because most stories capture nothing themselves. */
  const whole: Capture[] = [];
  const stage: Stage = {
    server: parts.coredns === null ? 'ndots' : 'CoreDNS',
    ndots: parts.ndots,
    mode: parts.mode,
    env: parts.env,
    async start({ objects, ...plan }) {
      const directory = join(LAB_DIRECTORY, 'objects');
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, 'objects.yaml'), objects);
      lab = await LabCluster.start(
        {
          corefile: usualCorefile,
          nodeResolvConf: usualNodeResolvConf,
          mode: parts.mode,
          ipv6: true,
          internet: { addresses: [INTERNET], script: parseAnswers({}, 'the internet') },
          ...plan,
          manifests: directory,
        },
        parts,
      );
      if (parts.pcap !== null) whole.push(...captureClients(lab));
      return lab;
    },
    async capture(machine, filter, act) {
      const capture = Capture.start(join('/run/netns', machine), filter);
      captures.push(capture);
      try {
        const result = await act();
        return { result, packets: await capture.stop() };
      } catch (error) {
        await capture.stop();
        throw error;
      }
    },
  };
  try {
    const acts = await story.play(stage);
    await Promise.all(whole.map((capture) => capture.stop()));
    if (parts.pcap !== null) writePackets(parts.pcap, captures, whole);
    const tookMs = performance.now() - began;
    if (lab !== null) await parts.linger?.(lab);
    return { story: headOf(story), how: 'real', server: stage.server, acts, tookMs };
  } finally {
    await (lab as LabCluster | null)?.close();
  }
}

/** Captures at every pod except DNS servers. */
function captureClients(lab: LabCluster): readonly Capture[] {
  const servers = new Set(lab.dnsPods.map(({ name }) => name));
  const machines = new Set([...lab.pods.values()].map(({ name }) => name));
  return [...machines]
    .filter((machine) => !servers.has(machine))
    .map((machine) => Capture.start(join('/run/netns', machine), {}));
}

/** Writes the packets that the story captured or, if it captured none, those of its clients. */
function writePackets(file: string, captures: readonly Capture[], whole: readonly Capture[]): void {
  const shown = captures.some(({ frames }) => frames.length > 0) ? captures : whole;
  const pieces: Uint8Array[] = [];
  const writer = new PcapngWriter((bytes) => void pieces.push(bytes), 'ndots lab');
  const frames: readonly Frame[] = shown.flatMap((each) => each.frames);
  for (const frame of frames.toSorted((one, other) => one.timeMs - other.timeMs))
    writer.packet(frame);
  writeFileSync(file, Buffer.concat(pieces));
}

/** Plays a story in virtual time. */
export async function modelStory(story: Story): Promise<StoryOutcome | null> {
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

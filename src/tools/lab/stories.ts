/** All of the lab's stories, in the order they are listed. */
import { fileURLToPath } from 'node:url';
import type { Act, Story } from './story.ts';
import { ipvsExpiry } from './stories/ipvs-expiry.ts';
import { serviceSharesModel } from './stories/service-shares-model.ts';
import { snatPorts } from './stories/snat-ports.ts';
import { staleConntrackModel } from './stories/stale-conntrack-model.ts';
import { tableFullModel } from './stories/table-full-model.ts';
import { readStoryFile } from './story-file/story-file.ts';

const DIRECTORY = new URL('../../../examples/lab/stories/', import.meta.url);

/** Models that are programs. `objects` are the manifests for the story's cluster. */
const models: Readonly<Record<string, (objects: string) => readonly Act[]>> = {
  'service-shares': serviceSharesModel,
  'table-full': tableFullModel,
  'stale-conntrack': staleConntrackModel,
};

function fromFile(name: string): Story {
  const { story, objects } = readStoryFile(fileURLToPath(new URL(`${name}.yaml`, DIRECTORY)));
  const model = models[name];
  return model === undefined ? story : { ...story, model: () => Promise.resolve(model(objects)) };
}

export const stories: readonly Story[] = [
  ...[
    'twelve-queries',
    'service-shares',
    'lost-half',
    'alpine-servfail',
    'wildcard-suffix',
    'tcp-blocked',
    'evdns-truncation',
    'packet-limit',
    'table-full',
    'stale-conntrack',
    'rollout',
    'swap',
    'node-cache-killed',
    'node-cache-upgraded',
    'autopath-stale-pod',
    'mixed-case',
    'forward-loop',
    'zone-emptied',
    'api-restart',
    'etcd-restart',
    'kube-health-localhost',
  ].map(fromFile),
  ipvsExpiry,
  snatPorts,
];

export function findStory(name: string): Story | null {
  return stories.find((story) => story.name === name) ?? null;
}

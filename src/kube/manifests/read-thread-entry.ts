/** Entry of the thread that reads large manifest files: a text in, its objects and problems out. */
import { parentPort } from 'node:worker_threads';
import { readManifests } from './manifest.ts';
import type { ManifestMessage, ManifestText } from './read-thread.ts';

const port = parentPort!;
port.on('message', ({ path, text }: ManifestText) => {
  const { manifests, problems } = readManifests(text, path);
  const message: ManifestMessage = { manifests, problems: problems.map(({ parts }) => parts) };
  port.postMessage(message);
});

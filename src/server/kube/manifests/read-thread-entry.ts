/**
 * Entry point of the thread that reads large manifest files. It receives a path, and returns that file's objects and
 * problems.
 */
import { parentPort } from 'node:worker_threads';
import { errorCode } from '../../base/error-code.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { readManifests } from './manifest-file.ts';
import type { ManifestMessage, ManifestRequest } from './read-thread.ts';

const port = parentPort!;
port.on('message', (request: ManifestRequest) => port.postMessage(read(request)));

function read({ path, memory }: ManifestRequest): ManifestMessage {
  let text: string;
  try {
    text = readFileText(path, FILE_MAX.manifest);
  } catch (error) {
    return { message: (error as Error).message, code: errorCode(error) };
  }
  const { manifests, bytes, problems } = readManifests(text, path, memory);
  return { manifests, bytes, problems: problems.map(({ parts }) => parts) };
}

/** A Corefile of a story: its text, or the name of a file relative to the story. */
import { join, dirname, isAbsolute } from 'node:path';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import { text, type YamlShape } from '../../../server/kube/manifests/yaml-shape.ts';
import type { StoryReading } from './story-reading.ts';

/** The text of a file that a story names; null: it cannot be read, which was reported. */
function readBeside(name: string, path: DocumentPath, reading: StoryReading): string | null {
  const file = fileBeside(name, reading);
  try {
    return readFileText(file, FILE_MAX.corefile);
  } catch (error) {
    reading.tell(path, `${file} cannot be read: ${whyFailed(error)}`);
    return null;
  }
}

/** Relative to the story. */
export function fileBeside(name: string, { file }: StoryReading): string {
  return isAbsolute(name) ? name : join(dirname(file), name);
}

/** A text without line break and brace is the name of a file. */
export const corefile: YamlShape<string> = {
  placeholder: 'COREFILE|FILE',
  read(value, path, reading: StoryReading) {
    const given = text.read(value, path, reading);
    const isName = given !== '' && !/[\n{}]/.test(given);
    const found = isName ? readBeside(given, path, reading) : given;
    if (found === null || found === '') return '';
    reading.corefiles.push({ path, text: found, file: isName ? fileBeside(given, reading) : null });
    return found;
  },
};

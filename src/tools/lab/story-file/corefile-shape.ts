/** A Corefile in a story, given as text, as a file name relative to the story, or as changes to the usual Corefile. */
import { join, dirname, isAbsolute } from 'node:path';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import {
  mapOf,
  mapping,
  required,
  simple,
  text,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import { isObject } from '../../../server/base/json-object.ts';
import { usualCorefile } from '../defaults.ts';
import type { StoryReading } from './story-reading.ts';

const anyText = simple('TEXT', 'a text', '', (value) => (typeof value === 'string' ? value : null));

/** The text of a file that a story refers to. Null if it cannot be read, which has been reported. */
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

/** The usual Corefile with these texts replaced. */
function changed(base: string, given: object, path: DocumentPath, reading: StoryReading): string {
  const fields = {
    replace: required(mapOf(anyText), 'old texts and their replacements'),
  };
  const { replace } = mapping(fields, 'a changed Corefile').read(given, path, reading);
  return Object.entries(replace ?? {}).reduce((text, [old, value]) => {
    if (!text.includes(old))
      reading.tell([...path, 'replace', old], `the default Corefile has no "${old}"`, base);
    return text.replace(old, () => value);
  }, base);
}

/** Accepts text, a file name (which has no line breaks or braces), or changes to the usual Corefile. */
export function corefileOf(base: string): YamlShape<string> {
  return {
    placeholder: 'COREFILE|FILE|{ replace: { OLD: NEW } }',
    read(value, path, reading: StoryReading) {
      const given = isObject(value)
        ? changed(base, value, path, reading)
        : text.read(value, path, reading);
      const isName = given !== '' && !/[\n{}]/.test(given);
      const found = isName ? readBeside(given, path, reading) : given;
      if (found === null || found === '') return '';
      const file = isName ? fileBeside(given, reading) : null;
      reading.corefiles.push({ path, text: found, file });
      return found;
    },
  };
}

export const corefile: YamlShape<string> = corefileOf(usualCorefile);

/** Strips Kuberhealthy objects down to the fields we use. */
import { child, list, type JsonObject } from '../../server/base/json-object.ts';
import { withoutManagedFields } from './json-store.ts';
import { boundedErrors } from './error-texts.ts';

/** kubectl's copy of the whole object. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** An object as stored. Errors written by other programs are shortened just like ours. */
export function storedObject(raw: JsonObject): JsonObject {
  const object = withoutManagedFields(raw);
  const metadata = child(object, 'metadata');
  const { [LAST_APPLIED]: _, ...annotations } = child(metadata, 'annotations');
  return {
    ...object,
    metadata: { ...metadata, annotations },
    ...withShortErrors(object, 'spec', 'Errors'),
    ...withShortErrors(object, 'status', 'errors'),
  };
}

function withShortErrors(object: JsonObject, part: string, key: string): JsonObject {
  const whole = child(object, part);
  if (!Array.isArray(whole[key])) return {};
  const errors = list(whole, key).map((each) =>
    typeof each === 'string' ? each : (JSON.stringify(each) ?? ''),
  );
  return { [part]: { ...whole, [key]: boundedErrors(errors) } };
}

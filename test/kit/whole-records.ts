/** Records that keep whole objects, for tests of sources. */
import type { KubeObject, ObjectKind } from '../../src/server/kube/store/objects.ts';
import type {
  GoneRecord,
  ObjectRecord,
  RecordFields,
  Reduction,
} from '../../src/server/kube/store/object-record.ts';

/** An object as JSON. */
export interface WholeRecord extends ObjectRecord {
  readonly json: string;
}

export const wholeFields: RecordFields = { json: 'text' };

export const wholeRecords: Reduction<WholeRecord> = {
  key: '',
  fields: {
    Namespace: wholeFields,
    Service: wholeFields,
    EndpointSlice: wholeFields,
    ServiceImport: wholeFields,
    Node: wholeFields,
    Pod: wholeFields,
  },
  of: (object) => ({
    kind: object.kind,
    namespace: namespaceOf(object),
    name: object.name,
    json: JSON.stringify(object, (key, value: unknown) => (key === 'triggeredAt' ? 0 : value)),
    ...(object.kind === 'EndpointSlice' ? { triggeredAt: object.triggeredAt } : {}),
  }),
};

/** Returns the object from which a record was made. */
export function wholeObject({ json, triggeredAt = 0 }: WholeRecord): KubeObject {
  const object = JSON.parse(json) as KubeObject;
  return object.kind === 'EndpointSlice' ? { ...object, triggeredAt } : object;
}

/** A single step from one state of the cluster to the next. */
export type ObjectChange =
  | { readonly verb: 'put'; readonly object: KubeObject }
  | {
      readonly verb: 'delete';
      readonly kind: ObjectKind;
      readonly namespace: string;
      readonly name: string;
    };

export function wholeChange(change: WholeRecord | GoneRecord): ObjectChange {
  if (!('of' in change)) return { verb: 'put', object: wholeObject(change) };
  const { of: kind, namespace, name } = change;
  return { verb: 'delete', kind, namespace, name };
}

/** Returns an object's namespace, or `''` if it has none. */
export function namespaceOf(object: KubeObject): string {
  return object.kind === 'Namespace' || object.kind === 'Node' ? '' : object.namespace;
}

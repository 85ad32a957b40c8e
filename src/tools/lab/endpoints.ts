/** Changes a service's endpoints during a story. */
import {
  child,
  children,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../server/base/json-object.ts';
import { serviceNameLabel } from '../../server/kube/store/transform.ts';

/** The `namespace/name` of the slice's service. */
function serviceOf(slice: JsonObject): string {
  const metadata = child(slice, 'metadata');
  return `${text(metadata, 'namespace')}/${textMap(metadata, 'labels')[serviceNameLabel] ?? ''}`;
}

/** Returns the service's slices with exactly these addresses, and with ports and nodes unchanged. */
export function withEndpoints(
  slices: readonly JsonObject[],
  service: string,
  addresses: readonly string[],
  all: readonly JsonObject[] = slices,
): readonly JsonObject[] {
  const known = all
    .filter((slice) => serviceOf(slice) === service)
    .flatMap((slice) => children(slice, 'endpoints'));
  return slices.map((slice) => {
    if (serviceOf(slice) !== service) return slice;
    const endpoints = addresses.map(
      (address) =>
        known.find((one) => texts(one, 'addresses').includes(address)) ?? { addresses: [address] },
    );
    return { ...slice, endpoints };
  });
}

export function endpointAddresses(
  slices: readonly JsonObject[],
  service: string,
): readonly string[] {
  return slices
    .filter((slice) => serviceOf(slice) === service)
    .flatMap((slice) => children(slice, 'endpoints'))
    .flatMap((endpoint) => texts(endpoint, 'addresses'));
}

/** One object of the Kubernetes API: read, created, replaced, patched, deleted. */
import { asObject, type JsonObject } from '../../base/json-object.ts';
import type { ApiChange, ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';
import { getJson, sendJson, type JsonRequest } from './get-json.ts';

/** Which object, and how long its server may take. All that follows rejects with an `ApiFailure`, or when aborted. */
export type ObjectRequest = Omit<JsonRequest, 'query' | 'headers' | 'bytesMax'>;

/** One that has to be there: status 404 is a failure of the kind `missing`. */
export async function getObject(client: ApiClient, request: ObjectRequest): Promise<JsonObject> {
  return asObject(await getJson(client, request));
}

/** @returns null: there is none (status 404) */
export function findObject(client: ApiClient, request: ObjectRequest): Promise<JsonObject | null> {
  return unlessMissing(() => getObject(client, request));
}

/** @param request its path is that of the collection. @returns the object as it is stored */
export function createObject(
  client: ApiClient,
  request: ObjectRequest,
  object: object,
): Promise<JsonObject> {
  return change(client, request, 'POST', 'application/json', object);
}

/** A `resourceVersion` in it that is not the present one is refused with status 409. @returns the object as it is stored */
export function replaceObject(
  client: ApiClient,
  request: ObjectRequest,
  object: object,
): Promise<JsonObject> {
  return change(client, request, 'PUT', 'application/json', object);
}

/** @param patch a JSON merge patch (RFC 7396): null takes a key away. @returns the object as it is stored */
export function patchObject(
  client: ApiClient,
  request: ObjectRequest,
  patch: object,
): Promise<JsonObject> {
  return change(client, request, 'PATCH', 'application/merge-patch+json', patch);
}

/** An object that is gone already is as good as deleted. */
export async function deleteObject(client: ApiClient, request: ObjectRequest): Promise<void> {
  await unlessMissing(() => change(client, request, 'DELETE', 'application/json', null));
}

/** What `ask` gives; null where the object is not there. */
export async function unlessMissing<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiFailure && error.kind === 'missing') return null;
    throw error;
  }
}

async function change(
  client: ApiClient,
  request: ObjectRequest,
  method: ApiChange['method'],
  contentType: string,
  body: object | null,
): Promise<JsonObject> {
  const sent = { method, contentType, body: body === null ? '' : JSON.stringify(body) };
  return asObject(await sendJson(client, { ...request, change: sent }));
}

/** Reads, creates, replaces, patches and deletes single Kubernetes API objects. */
import { asObject, type JsonObject } from '../../base/json-object.ts';
import type { ApiChange, ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';
import { getJson, sendJson, type JsonRequest } from './get-json.ts';

/** The object and the timeout. All functions in this file reject with an `ApiFailure`, or when aborted. */
export type ObjectRequest = Omit<JsonRequest, 'query' | 'headers' | 'bytesMax'>;

/** Reads an object that must exist. Status 404 is a failure of kind `missing`. */
export async function getObject(client: ApiClient, request: ObjectRequest): Promise<JsonObject> {
  return asObject(await getJson(client, request));
}

/**
 * Reads an object.
 * @returns null if it does not exist (status 404)
 */
export function findObject(client: ApiClient, request: ObjectRequest): Promise<JsonObject | null> {
  return unlessMissing(() => getObject(client, request));
}

/**
 * Creates an object.
 * @param request with the collection's path
 * @returns the object as stored
 */
export function createObject(
  client: ApiClient,
  request: ObjectRequest,
  object: object,
): Promise<JsonObject> {
  return change(client, request, 'POST', 'application/json', object);
}

/**
 * Replaces an object. If its `resourceVersion` is not current, the server refuses with status 409.
 * @returns the object as stored
 */
export function replaceObject(
  client: ApiClient,
  request: ObjectRequest,
  object: object,
): Promise<JsonObject> {
  return change(client, request, 'PUT', 'application/json', object);
}

/**
 * Patches an object.
 * @param patch a JSON merge patch (RFC 7396), where null removes a key
 * @returns the object as stored
 */
export function patchObject(
  client: ApiClient,
  request: ObjectRequest,
  patch: object,
): Promise<JsonObject> {
  return change(client, request, 'PATCH', 'application/merge-patch+json', patch);
}

/** Deletes an object. Succeeds if it does not exist. */
export async function deleteObject(client: ApiClient, request: ObjectRequest): Promise<void> {
  await unlessMissing(() => change(client, request, 'DELETE', 'application/json', null));
}

/** Returns the result of `ask`, or null if the object does not exist. */
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

/** Describes the client and the result of a trace. */
import type { ResultDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';

/** `glibc 2.36`, or only the name if the client has no versions. */
export function label(document: TraceDocument): string {
  const { name, version } = document.client;
  return version === '' ? name : `${name} ${version}`;
}

/** The result of the first lookup: addresses, or why it failed. */
export function outcome(document: TraceDocument): string {
  const { result } = document;
  if (result.ok) return result.addresses.join(' ') || 'no address';
  return `fails: ${failure(result)}`;
}

/** The program's error message and symbol. A bare exit code is not repeated. */
export function failure({ error, code }: ResultDocument): string {
  const named = code !== null && !/^\d+$/.test(code) && error !== code;
  return `${error ?? 'no address'}${named ? ` (${code})` : ''}`;
}

/** The client and the result of a trace in words. */
import type { ResultDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';

/** `glibc 2.36`, or the name alone where the client has no versions. */
export function label(document: TraceDocument): string {
  const { name, version } = document.client;
  return version === '' ? name : `${name} ${version}`;
}

/** What the first lookup came to: addresses, or why it fails. */
export function outcome(document: TraceDocument): string {
  const { result } = document;
  if (result.ok) return result.addresses.join(' ') || 'no address';
  return `fails: ${failure(result)}`;
}

/** What the program prints, and the symbol behind it; a bare exit code says nothing twice. */
export function failure({ error, code }: ResultDocument): string {
  const named = code !== null && !/^\d+$/.test(code) && error !== code;
  return `${error ?? 'no address'}${named ? ` (${code})` : ''}`;
}

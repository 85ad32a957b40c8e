/** Describes the client and the outcome of a trace. */
import type { ResultDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';

/** `glibc 2.36`, or just the name if the client has no versions. */
export function label(document: TraceDocument): string {
  const { name, version } = document.client;
  return version === '' ? name : `${name} ${version}`;
}

/** The first lookup's result, which is either addresses or the reason why it failed. */
export function outcome(document: TraceDocument): string {
  const { result } = document;
  if (result.ok) return result.addresses.join(' ') || 'no address';
  return `fails: ${failure(result)}`;
}

/** The program's error message and symbol. If it is only an exit code, it is not repeated. */
export function failure({ error, code }: ResultDocument): string {
  const named = code !== null && !/^\d+$/.test(code) && error !== code;
  return `${error ?? 'no address'}${named ? ` (${code})` : ''}`;
}

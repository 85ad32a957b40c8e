/** Answers in a modelled network for a name seen on the wire. */
import { parseAnswerSpec } from './answer-spec.ts';
import type { AnswerRule } from './answers-file.ts';

/**
 * Builds the rules for a name that exists.
 * @param number distinguishes names, because the address contains it
 * @param has whether it has an A record, and an AAAA record
 */
export function seenAnswers(
  name: string,
  number: number,
  has: { readonly a: boolean; readonly aaaa: boolean },
): readonly AnswerRule[] {
  // Uses benchmarking addresses (RFC 2544) first and then reserved ones (240.0.0.0/4), so that no two names share one.
  const bits = (number < 2 ** 17 ? 0xc6120000 : 0xf0000000) + number;
  const v4 = `${bits >>> 24}.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`;
  const v6 = `2001:db8::${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
  const rule = (type: string, answer: string): AnswerRule => ({
    server: null,
    name,
    type,
    answers: [parseAnswerSpec(answer, name)],
  });
  return [
    rule('A', has.a ? v4 : 'NODATA'),
    rule('AAAA', has.aaaa ? v6 : 'NODATA'),
    rule('*', 'NODATA'),
  ];
}

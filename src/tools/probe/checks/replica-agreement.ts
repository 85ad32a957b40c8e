/**
 * Checks that all replicas give the same answer. A replica that has lost its API server watch or has another
 * configuration does not.
 */
import { appendTo } from '../../../server/base/append-to.ts';
import { typeName } from '../../../server/wire/iana.ts';
import {
  askOne,
  brief,
  dataOfAnswer,
  observe,
  outcome,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import { askedType, comparedNames } from '../parameters.ts';

export const replicaAgreement: CheckKind = checkKind({
  name: 'replica-agreement',
  summary: 'all replicas give the same answer',
  needs: 'replicas',
  parameters: { names: comparedNames, type: askedType },
  async run({ names, type }, context) {
    const found: Observation[] = [];
    for (const name of names) {
      const replies = await Promise.all(
        context.replicas.map(async (replica) => ({
          replica: serverText(replica),
          result: await askOne(context, replica, question(name, type)),
        })),
      );
      // Replicas that do not answer are reported by replica-answers. Here, they neither agree nor disagree.
      const results = replies.map(({ result }) => result).filter(({ reply }) => reply !== null);
      const groups = new Map<string, string[]>();
      for (const { replica, result } of replies) {
        if (result.reply === null) continue;
        const answer = `${outcome(result, type)} ${dataOfAnswer(result, type).join(' ')}`.trim();
        appendTo(groups, answer, replica);
      }
      const told = [...groups].map(
        ([answer, who]) =>
          `${brief(who)}: ${answer.length > 120 ? `${answer.slice(0, 120)} …` : answer}`,
      );
      const target = `${name} ${typeName(type)}`;
      if (groups.size === 0)
        found.push(observe(target, results, { state: 'unknown', text: 'no replica answers' }));
      else
        found.push(
          observe(target, results, {
            state: groups.size === 1 ? 'ok' : 'failed',
            text:
              groups.size === 1
                ? `the same from ${results.length} of ${replies.length} replicas`
                : `the replicas disagree: ${told.join('; ')}`,
          }),
        );
    }
    return found;
  },
});

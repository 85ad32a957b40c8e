/**
 * Checks that every replica answers at its own address. It is hard to spot one bad replica among many behind the
 * service address.
 */
import { observeEach, question } from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { askedName, askedType } from '../parameters.ts';

export const replicaAnswers: CheckKind = checkKind({
  name: 'replica-answers',
  summary: 'every replica answers at its own address',
  needs: 'replicas',
  parameters: { name: askedName, type: askedType },
  run: ({ name, type }, context) => observeEach(context, context.replicas, question(name, type)),
});

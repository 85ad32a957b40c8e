import { Later } from './later.ts';

/** A value now, or one to come: what a link of the chain returns (see ARCHITECTURE.md, "Synchronous until it must wait"). */
export type Maybe<T> = T | Promise<T> | Later<T>;

/** Whether `value` has to be waited for. */
export function isLater<T>(value: Maybe<T>): value is Promise<T> | Later<T> {
  return value instanceof Later || value instanceof Promise;
}

/**
 * Goes on with `step` now if the value is here, later if it is not. `context` is handed to the step, so that on hot ways it can
 * be a function made once rather than a closure per query.
 */
export function andThen<A, B, C = undefined>(
  value: Maybe<A>,
  step: (value: A, context: C) => Maybe<B>,
  context: C = undefined as C,
): Maybe<B> {
  if (value instanceof Later) return value.map(step, context);
  if (value instanceof Promise) return value.then((found) => step(found, context));
  return step(value, context);
}

/** Puts what `step` makes of an error in the place of a value that does not come. */
export function orElse<T, C>(
  value: Promise<T> | Later<T>,
  step: (error: unknown, context: C) => Maybe<T>,
  context: C,
): Promise<T> | Later<T> {
  if (value instanceof Later) return value.rescue(step, context);
  return value.catch((error: unknown) => step(error, context));
}

/** Calls one of the two when the value, or an error, is there; nobody else uses it. */
export function whenSettled<T, C>(
  value: Promise<T> | Later<T>,
  onValue: (value: T, context: C) => void,
  onError: (error: unknown, context: C) => void,
  context: C,
): void {
  if (value instanceof Later) return value.settle(onValue, onError, context);
  value.then(
    (found) => onValue(found, context),
    (error: unknown) => onError(error, context),
  );
}

/** A value now, or a promise of one: what a link of the chain returns (see ARCHITECTURE.md, "Synchronous until it must wait"). */
export type Maybe<T> = T | Promise<T>;

/** Whether `value` has to be waited for. */
export function isLater<T>(value: Maybe<T>): value is Promise<T> {
  return value instanceof Promise;
}

/** Goes on with `then` now if the value is here, later if it is not. */
export function andThen<A, B>(value: Maybe<A>, then: (value: A) => Maybe<B>): Maybe<B> {
  return value instanceof Promise ? value.then(then) : then(value);
}

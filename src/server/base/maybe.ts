/**
 * A value, or a promise of one. This is what each link in the plugin chain returns (see ARCHITECTURE.md, "Synchronous
 * until it must wait").
 */
export type Maybe<T> = T | Promise<T> | Later<T>;

/** Returns true if `value` is not available yet. */
export function isLater<T>(value: Maybe<T>): value is Promise<T> | Later<T> {
  return value instanceof Later || value instanceof Promise;
}

/**
 * Continues with `step`, immediately if the value is available and otherwise later. `context` is passed to the step, so
 * that hot paths can use a static function instead of one closure per query.
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

/** Replaces an error with the result of `step`. */
export function orElse<T, C>(
  value: Promise<T> | Later<T>,
  step: (error: unknown, context: C) => Maybe<T>,
  context: C,
): Promise<T> | Later<T> {
  if (value instanceof Later) return value.rescue(step, context);
  return value.catch((error: unknown) => step(error, context));
}

/** Calls one of the two functions once there is a value or an error. The value must not have any other user. */
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

/** A step for the value or the error. */
interface LaterStep {
  readonly onValue: ((value: never, context: never) => Maybe<unknown>) | null;
  readonly onError: ((error: unknown, context: never) => Maybe<unknown>) | null;
  readonly context: unknown;
  next: LaterStep | null;
}

/**
 * A deferred value that is lighter than a promise. It has a single list of steps, which run within the call that
 * settles it. The reply to a forwarded query therefore passes through all links of the chain in the same turn that read
 * its datagram. `map` and `rescue` change this object's value and return the object, so each user takes it over from
 * the previous one. To share a value, use `then`, which creates a promise.
 */
export class Later<T> implements PromiseLike<T> {
  #state: 'pending' | 'value' | 'error' = 'pending';
  #value: unknown;
  #first: LaterStep | null = null;
  #last: LaterStep | null = null;
  #running = false;

  /** Settles the value. If it is itself deferred, waits for it. */
  resolve(value: Maybe<T>): void {
    this.#take(value);
    this.#run();
  }

  reject(error: unknown): void {
    this.#state = 'error';
    this.#value = error;
    this.#run();
  }

  /** Replaces the value with the result of `step`. */
  map<B, C>(step: (value: T, context: C) => Maybe<B>, context: C): Later<B> {
    this.#add({ onValue: step as LaterStep['onValue'], onError: null, context, next: null });
    return this as unknown as Later<B>;
  }

  /** Replaces an error with the result of `step`. */
  rescue<C>(step: (error: unknown, context: C) => Maybe<T>, context: C): this {
    this.#add({ onValue: null, onError: step as LaterStep['onError'], context, next: null });
    return this;
  }

  /** Sets both final steps. There must be no further users. */
  settle<C>(
    onValue: (value: T, context: C) => void,
    onError: (error: unknown, context: C) => void,
    context: C,
  ): void {
    this.#add({ onValue: onValue as LaterStep['onValue'], onError, context, next: null });
  }

  /** Returns a promise of the value as it is at this point in the list of steps. */
  // oxlint-disable-next-line unicorn/no-thenable -- for `await`
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const promise = new Promise<T>((resolve, reject) => {
      this.#add({
        onValue: ((value: T) => {
          resolve(value);
          return value;
        }) as LaterStep['onValue'],
        onError: (error) => {
          reject(error as Error);
          return undefined;
        },
        context: undefined,
        next: null,
      });
    });
    return promise.then(onValue, onError);
  }

  #add(step: LaterStep): void {
    if (this.#last === null) this.#first = step;
    else this.#last.next = step;
    this.#last = step;
    if (this.#state !== 'pending') this.#run();
  }

  #take(value: Maybe<unknown>): void {
    if (value instanceof Later || value instanceof Promise) {
      this.#state = 'pending';
      value.then(
        (found: unknown) => this.resolve(found as T),
        (error: unknown) => this.reject(error),
      );
    } else {
      this.#state = 'value';
      this.#value = value;
    }
  }

  #run(): void {
    // A step may add another step, or settle the value that this object waits for.
    if (this.#running) return;
    this.#running = true;
    while (this.#first !== null && this.#state !== 'pending') {
      const step = this.#first;
      this.#first = step.next;
      if (step.next === null) this.#last = null;
      const run = (this.#state === 'value' ? step.onValue : step.onError) as
        | ((value: unknown, context: unknown) => Maybe<unknown>)
        | null;
      if (run === null) continue;
      try {
        this.#take(run(this.#value, step.context));
      } catch (error) {
        this.#state = 'error';
        this.#value = error;
      }
    }
    this.#running = false;
  }
}

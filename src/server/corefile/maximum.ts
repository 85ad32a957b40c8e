/**
 * `max_connections` and similar properties, parsed like CoreDNS does for each transport. They are integers, where 0
 * means no limit.
 */
import { setting, type PropertySchema } from './properties.ts';
import { integer, value, Wrong, wrong } from './word-values.ts';

const whole = integer('COUNT');

/**
 * A property that can occur once per server block.
 * @param what the things being counted, for the documentation
 * @param byDefault the default, for the documentation
 */
export function maximum(
  name: string,
  what: string,
  byDefault: string,
): PropertySchema<number | null> {
  const count = value('COUNT', (word) => {
    const found = whole.read(word);
    if (found instanceof Wrong) {
      const { text, hint, form } = found;
      return new Wrong(`invalid ${name} value '${word.text}': ${text}`, hint, form);
    }
    return found < 0 ? wrong(`${name} must be a non-negative integer: ${found}`) : found;
  });
  const property = setting(name, count, { help: `${what}, 0: no limit (default ${byDefault})` });
  return {
    ...property,
    take(line, before) {
      if (before !== null) line.refuse(`${name} already defined for this server block`);
      return property.take(line, before);
    },
  };
}

/** Converts such a number to a limit. */
export function unlessZero(count: number): number {
  return count === 0 ? Infinity : count;
}

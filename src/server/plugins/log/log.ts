/** `log`: a line for each query. */
import { andThen, isLater } from '../../base/maybe.ts';
import { position } from '../../corefile/positions.ts';
import { list } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { value, wrong } from '../../corefile/word-values.ts';
import { absoluteName, isDomainName } from '../../corefile/zones.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { isInZone } from '../../engine/contract/zone-match.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { classOf, typeOf } from './classes.ts';
import { commonFormat, compileFormat, queryFields } from '../../engine/contract/log-format.ts';

const classNames = ['all', 'success', 'denial', 'error'] as const;

const logClass = value('all|success|denial|error', ({ text }) => {
  const found = classNames.find((name) => name === text);
  return found ?? wrong(`invalid Class: ${text}`, `Known classes: ${classNames.join(', ')}.`);
});

/** A single argument is always a name. If there are several, the last one is a format if it contains a brace. */
const scope = position(
  '[NAMES…] [FORMAT]',
  'names to log (default all), and the format of a line (default `{common}`)',
  (line) => {
    const words = line.takeAll();
    const last = words.at(-1)?.text ?? '';
    const hasFormat = words.length > 1 && last.includes('{');
    const names = (hasFormat ? words.slice(0, -1) : words).map(({ text, place }) =>
      text === '' || isDomainName(text)
        ? absoluteName(text).toLowerCase()
        : line.refuse(`not a valid domain name: ${text}`, place, {
            hint: text.includes('{') ? 'A format must follow a name: log . FORMAT' : null,
          }),
    );
    return { names: names.length === 0 ? ['.'] : names, format: hasFormat ? last : commonFormat };
  },
);

const syntax = directive({
  name: 'log',
  summary: 'logs every query',
  repeat: 'gather',
  args: { scope },
  properties: {
    classes: list('class', logClass, { help: 'log only replies of these classes (default all)' }),
  },
});

interface LogRule {
  readonly zone: WireName;
  readonly print: ReturnType<typeof compileFormat>;
  /** Empty means all. */
  readonly classes: ReadonlySet<string>;
}

/** Logs a line for each reply that is sent, according to the first rule whose name covers the question. */
export const log: Plugin = definePlugin({
  syntax,
  setup(options, context, next) {
    const rules = options.flatMap(({ scope: { names, format }, classes }): LogRule[] => {
      const print = compileFormat(format);
      const wanted = new Set<string>(classes.includes('all') ? [] : classes);
      return names.map((name) => ({ print, zone: foldName(parseName(name)), classes: wanted }));
    });
    const { clock, log: lines } = context;
    const write = (rule: LogRule, query: Query, reply: Reply, begun: number): Reply => {
      const { classes, print } = rule;
      if (classes.size > 0 || query.notes !== null) {
        const type = typeOf(query, reply, clock.wall());
        query.notes?.set('log/type', type).set('log/class', classOf[type]);
        if (classes.size > 0 && !classes.has(classOf[type])) return reply;
      }
      const elapsed = clock.now() - begun;
      const fields = lines.structured ? queryFields(query, reply, elapsed) : undefined;
      lines.raw(`[INFO] ${print(query, reply, elapsed)}`, fields);
      return reply;
    };
    const ruleFor = (query: Query): LogRule | null => {
      for (const rule of rules) if (isInZone(query, rule.zone)) return rule;
      return null;
    };
    return (query) => {
      const rule = ruleFor(query);
      if (rule === null) return next(query);
      const begun = query.depth > 0 || query.proto === 'internal' ? clock.now() : query.arrived;
      const reply = next(query);
      if (!isLater(reply)) return write(rule, query, reply, begun);
      const kept = query.keep();
      return andThen(reply, (later) => write(rule, kept, later, begun));
    };
  },
});

/** `template`: builds answers from the query. */
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { TemplateLink } from './link.ts';
import { syntax } from './syntax.ts';

/** Answers queries from the first template whose zone, class, type and expression match. */
export const template: Plugin = definePlugin({
  syntax,
  setup(uses, context, next) {
    const link = new TemplateLink(uses, context, next);
    return (query) => link.answer(query);
  },
});

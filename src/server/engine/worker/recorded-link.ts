import { andThen, isLater } from '../../base/maybe.ts';
import type { LinkRecorder } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import type { Next } from '../contract/plugin.ts';

/**
 * Wraps a link so that it reports to the query's recorder when it starts and ends. For queries without a recorder, this
 * costs a single field check.
 */
export function recorded(name: string, link: Next): Next {
  return (query) => {
    const { recorder } = query;
    if (recorder === null) return link(query);
    const span = recorder.entered(name);
    try {
      const reply = link(query);
      if (isLater(reply)) return andThen(reply, done, { recorder, span });
      recorder.done(span);
      return reply;
    } finally {
      recorder.left(span);
    }
  };
}

function done(
  reply: Reply,
  { recorder, span }: { readonly recorder: LinkRecorder; readonly span: number },
): Reply {
  recorder.done(span);
  return reply;
}

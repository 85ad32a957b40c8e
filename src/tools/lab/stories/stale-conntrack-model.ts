/** Models a connection from one source port to a pod that is gone, in virtual time. */
import { ConntrackTable, kernelOf } from '../proxy-rules/conntrack.ts';
import { act, equal, within, type Act } from '../story.ts';

const PORT = 40_000;

export function staleConntrackModel(): readonly Act[] {
  // Sends queries from one port at this interval. Every packet extends the entry, even if it is not answered.
  const lasts = (everySeconds: number): number => {
    const table = new ConntrackTable(kernelOf('6.18'));
    table.packet('flow', 'original', 0);
    table.packet('flow', 'reply', 1);
    for (let at = everySeconds; at < 3600; at += everySeconds)
      if (table.packet('flow', 'original', at * 1000) === 'new') return at;
    return 3600;
  };
  return [
    act(
      'flaw',
      'a query each second prolongs the entry, answered or not',
      `dig -b 0.0.0.0#${PORT}`,
      [equal('seconds per hour without answers', 3600, lasts(1))],
    ),
    act(
      'cure',
      'a pause longer than the entry’s timeout (30 s, or 120 s for a stream)',
      `dig -b 0.0.0.0#${PORT}`,
      [within('seconds until the next query finds the new pod', [31, 121], lasts(121))],
    ),
  ];
}

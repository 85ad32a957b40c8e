/** The table of check kinds. Adding a kind takes a file in `checks/` and a line here. */
import type { CheckKind } from './check.ts';
import { aaaaConsistency } from './checks/aaaa-consistency.ts';
import { edns1232 } from './checks/edns-1232.ts';
import { expectedAddresses } from './checks/expected-addresses.ts';
import { externalNames } from './checks/external-names.ts';
import { negative } from './checks/negative.ts';
import { newObjectVisibility } from './checks/new-object-visibility.ts';
import { pairSameSocket } from './checks/pair-same-socket.ts';
import { ptr } from './checks/ptr.ts';
import { replicaAgreement } from './checks/replica-agreement.ts';
import { replicaAnswers } from './checks/replica-answers.ts';
import { searchWalk } from './checks/search-walk.ts';
import { suffixHazards } from './checks/suffix-hazards.ts';
import { tcp } from './checks/tcp.ts';
import { truncationRoundtrip } from './checks/truncation-roundtrip.ts';
import { vipFixedPort } from './checks/vip-fixed-port.ts';
import { vipFreshPort } from './checks/vip-fresh-port.ts';

/** All kinds, in the order shown by `ndots check list`. */
export const checkKinds: readonly CheckKind[] = [
  replicaAnswers,
  vipFreshPort,
  vipFixedPort,
  pairSameSocket,
  tcp,
  truncationRoundtrip,
  edns1232,
  searchWalk,
  suffixHazards,
  aaaaConsistency,
  replicaAgreement,
  externalNames,
  expectedAddresses,
  negative,
  ptr,
  newObjectVisibility,
];

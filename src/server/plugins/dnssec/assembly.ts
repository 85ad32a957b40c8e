/** The signed form of a reply. */
import { CLASS, FLAG, HEADER, MESSAGE_MAX, TYPE } from '../../wire/iana.ts';
import { mover } from '../../wire/mover.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';
import { SECTION, type Section } from '../../wire/writer.ts';
import type { FoundSet } from './found-sets.ts';
import type { Plan } from './signing-plan.ts';
import type { Signed } from './signatures.ts';

const records = new Records();
const sections: readonly Section[] = [SECTION.answer, SECTION.authority, SECTION.additional];

/**
 * Builds the signed reply. Each section contains its records, the proof and then the signatures, in the order of
 * `plan.sets`. A reply that is too long is truncated with TC.
 * @returns a reply with its own bytes
 */
export function assemble(reply: Reply, plan: Plan, signatures: readonly Signed[]): Reply {
  const { bytes, start } = reply;
  mover.begin(bytes, start);
  copyQuestion(bytes, start);
  let full = false;
  for (const section of sections) {
    let count = 0;
    const add = (write: () => void): void => {
      if (full) return;
      const before = mover.length;
      write();
      full = mover.length > MESSAGE_MAX;
      if (full) mover.length = before;
      else count++;
    };
    if (section !== SECTION.authority || !plan.alone) {
      for (records.of(reply); records.next();)
        if (records.section === section)
          add(() => {
            mover.name(records.ownerAt);
            mover.body(records.ttlAt - 4, records.replacedTtl);
          });
    }
    const { proof } = plan;
    if (proof?.section === section) add(() => writeRecord(proof, TYPE.NSEC, proof.data[0]!));
    for (const [index, set] of plan.sets.entries()) {
      if (set.section !== section) continue;
      for (const data of signatures[index]!.records) add(() => writeRecord(set, TYPE.RRSIG, data));
    }
    mover.setU16(section, count);
  }
  const { out } = mover;
  if (full) out[2] = out[2]! | (FLAG.TC >> 8);
  out[3] = (out[3]! & ~FLAG.RCODE) | (plan.rcode & FLAG.RCODE);
  const own = out.slice(0, mover.length);
  return reply.with({
    bytes: own,
    start: 0,
    end: own.length,
    rcode: plan.rcode,
    ttlAt: null,
    ttl: -1,
  });
}

/** Copies the question unchanged, so that pointers to its labels remain valid. */
function copyQuestion(bytes: Uint8Array, start: number): void {
  let at = start + HEADER.SIZE;
  for (; bytes[at] !== 0; at += bytes[at]! + 1) mover.map(at - start, at - start);
  mover.raw(bytes, start + HEADER.SIZE, at + 5);
}

function writeRecord({ ownerAt, ttl }: FoundSet, type: number, data: Uint8Array): void {
  mover.again(ownerAt);
  mover.u16(type);
  mover.u16(CLASS.IN);
  mover.u32(ttl);
  mover.u16(data.length);
  mover.raw(data, 0, data.length);
}

/** The data about known resolvers (asking-classes.json) agrees with the recordings that it comes from. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { profilesText } from '../../../../test/kit/measure-traits.ts';
import { askingProfiles, classes, kinds, smoothed } from './asking-classes.ts';
import { traitNames, type Trait } from './lookup-traits.ts';

/** Fewer lookups say too little about a share. */
const LEAST_SEEN = 10;
/** In percentage points. The captures come from few settings, whereas a class stands for all of them. */
const GROSS = 50;

describe('the data about known resolvers', () => {
  test('has the traits that test/kit/measure-traits.ts measures in the recordings', async () => {
    const file = new URL('asking-classes.json', import.meta.url);
    const text = readFileSync(file, 'utf8');
    assert.equal(text, await profilesText(), 'write it again: node test/kit/measure-traits.ts');
  });

  test('has a share for every trait of every class', () => {
    for (const [at, { kind, shares }] of classes.entries())
      for (const trait of traitNames)
        assert.ok(shares[trait] > 0 && shares[trait] < 100, `${at} ${kind}, ${trait}`);
  });

  test('uses only known traits, kinds, changes and captures, and uses every change', () => {
    const { assumed, changes, measured, circumstances, classes: usual } = askingProfiles;
    const traits = [
      ...assumed.flatMap(({ shares }) => Object.keys(shares)),
      ...Object.values(changes).flatMap(({ shares }) => Object.keys(shares)),
      ...usual.flatMap(({ shares = {} }) => Object.keys(shares)),
    ];
    for (const trait of traits) assert.ok(traitNames.includes(trait as Trait), trait);
    const used = [
      ...usual.flatMap(({ changes: names = [] }) => names),
      ...circumstances.map(({ change }) => change),
    ];
    assert.deepEqual(new Set(used), new Set(Object.keys(changes)));
    for (const { kind, like = [] } of usual) {
      assert.ok(kinds.includes(kind), kind);
      for (const capture of like) assert.ok(capture in measured, capture);
    }
  });

  test('gives a reason for each share that is not measured', () => {
    const { assumed, changes, classes: usual } = askingProfiles;
    for (const { why } of [...assumed, ...Object.values(changes)]) assert.match(why, /\w.*\.$/);
    for (const { why = '', shares, like } of usual)
      if (shares !== undefined || like !== undefined) assert.match(why, /\w.*\.$/);
  });

  test('agrees with the captures of tools and forwarders', () => {
    const wrong = askingProfiles.classes.flatMap(({ like = [], why }, at) =>
      like.flatMap((capture) =>
        Object.entries(askingProfiles.measured[capture]!)
          .filter(
            ([trait, counts]) =>
              counts[1] >= LEAST_SEEN &&
              Math.abs(smoothed(counts) - classes[at]!.shares[trait as Trait]) > GROSS,
          )
          .map(
            ([trait, [shown, seen]]) =>
              `${why} ${capture}: ${trait} ${shown} of ${seen}, not ${classes[at]!.shares[trait as Trait]}%`,
          ),
      ),
    );
    assert.deepEqual(wrong, []);
  });
});

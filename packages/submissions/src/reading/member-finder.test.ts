import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { type FoundMember, MemberFinder, withoutMember } from './member-finder.ts';

const NAMES = ['token', '$set', '$lib', 'a'];

const finder = new MemberFinder(NAMES);

/** No escapes: such a text would not be canonical. */
const plain = fc.string().filter((text) => JSON.stringify(text) === `"${text}"`);
const name = fc.oneof(
  fc.constantFrom(...NAMES),
  plain.filter((text) => !/^\d/.test(text) && text !== '__proto__'),
);
const { object } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    plain,
    fc.integer(),
    fc.constantFrom(true, false, null, 1.5),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(name, tie('value'), { maxKeys: 6 }),
}));

function parsedValue(text: string, { valueStart, end }: FoundMember): unknown {
  return JSON.parse(text.slice(valueStart, end));
}

test('finds the members that an object has at its top level, with their values', () => {
  fc.assert(
    fc.property(object, (given) => {
      const value = given as Record<string, unknown>;
      const text = JSON.stringify(value);
      const found = finder.find(text).map((member) => [member.name, parsedValue(text, member)]);
      expect(found).toEqual(Object.entries(JSON.parse(text)).filter(([each]) => NAMES.includes(each)));
    }),
  );
});

test('leaves out a member, and nothing else', () => {
  fc.assert(
    fc.property(object, (given) => {
      const text = JSON.stringify(given);
      for (const member of finder.find(text)) {
        const expected = JSON.parse(text) as Record<string, unknown>;
        delete expected[member.name];
        expect(withoutMember(text, member)).toBe(JSON.stringify(expected));
      }
    }),
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findBadLines } from './isolate.ts';

test('exactly the bad lines are found, with few checks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 300 }), async (lines) => {
      let checks = 0;
      const found = await findBadLines(lines, async (some) => {
        checks += 1;
        const bad = some.find((line) => line === 0);
        return bad === undefined ? undefined : `has a ${bad}`;
      });
      const expected = lines.flatMap((line, index) => (line === 0 ? [{ index, reason: 'has a 0' }] : []));
      expect(found).toEqual(expected);
      expect(checks).toBeLessThanOrEqual(1 + 2 * expected.length * Math.ceil(Math.log2(lines.length + 1)));
    }),
  );
});

import { expect, inject, test } from 'vitest';
import { Arena } from './arena.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { DOORS, type Product } from './product.ts';

/** The limit at its limit and one over, at the first door that has it. */
function cornersOf(limit: LimitId): Product[] {
  const [door] = Object.entries(DOORS).find(([, { limits }]) => limits.includes(limit)) ?? [];
  if (door === undefined) return [];
  return (['at', 'over'] as const).map((level, index) => ({ door, corners: [{ limit, level }], seed: index }));
}

test('each limit: a request at it is accepted, and one beyond it is refused with an error that names it', async () => {
  await using arena = await Arena.start(
    { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl') },
    'limits',
  );
  for (const limit of Object.keys(LIMITS) as LimitId[]) {
    const products = cornersOf(limit);
    if (products.length === 0) continue;
    // Not how long it takes: npm run hostile judges that.
    const { wrong } = await arena.round(products, 0);
    expect(wrong, limit).toEqual([]);
  }
  expect(await arena.leaks()).toEqual([]);
});

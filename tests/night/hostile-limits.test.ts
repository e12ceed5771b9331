import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Arena } from '../kit/hostile/arena.ts';
import { LIMITS, type LimitId } from '../kit/hostile/limits.ts';
import { DOORS, type Product, productsOf } from '../kit/hostile/product.ts';
import { seededRandom } from '../kit/random.ts';

let arena: Arena;

beforeAll(async () => {
  arena = await Arena.start({ kafkaBrokers: inject('kafkaBrokers'), name: 'limits' });
});
afterAll(() => arena[Symbol.asyncDispose]());

/** The limit at its limit and one over, at the first door that has it. */
function cornersOf(limit: LimitId): Product[] {
  const [door] = Object.entries(DOORS).find(([, { limits }]) => limits.includes(limit)) ?? [];
  if (door === undefined) return [];
  return (['at', 'over'] as const).map((level, index) => ({ door, corners: [{ limit, level }], seed: index }));
}

test('each limit: a request at it is accepted, and one beyond it is refused with an error that names it', async () => {
  for (const limit of Object.keys(LIMITS) as LimitId[]) {
    const products = cornersOf(limit);
    if (products.length === 0) continue;
    // Not how long it takes: npm run hostile judges that.
    const { wrong } = await arena.round(products, 0);
    expect(wrong, limit).toEqual([]);
  }
});

test('rounds of hostile requests: each tenant gets what it should', async () => {
  // Always the same seeds: a build must not fail for what it did not change. npm run hostile tries new ones.
  for (let seed = 1; seed <= 20; seed += 1) {
    const { wrong } = await arena.round(productsOf(seed, seededRandom(seed)));
    expect(wrong, `seed ${seed}`).toEqual([]);
  }
  expect(await arena.leaks()).toEqual([]);
});

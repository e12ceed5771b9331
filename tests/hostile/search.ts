import { seededRandom } from '../support/random.ts';
import type { Arena, Verdict } from './arena.ts';
import { type Product, productsOf } from './product.ts';

/** What is wrong, and the fewest requests with which it still is. */
export interface Failure {
  readonly faults: readonly string[];
  readonly products: readonly Product[];
}

export interface RoundOutcome extends Pick<Verdict, 'responses' | 'unavailable'> {
  /** `undefined`: all was well. */
  readonly failure: Failure | undefined;
  /** Once too slow, and not again. */
  readonly late: readonly string[];
}

/** A round is too slow when it was so each time. */
const ATTEMPTS = 3;

/** Runs the round of a seed. */
export async function runSeed(arena: Arena, seed: number): Promise<RoundOutcome> {
  const products = productsOf(seed, seededRandom(seed));
  const { wrong, slow, responses, unavailable } = await arena.round(products);
  const counts = { responses, unavailable };
  if (wrong.length > 0) return { ...counts, late: [], failure: { faults: wrong, products } };
  const faults = slow.length > 0 ? await stillSlow(arena, products) : [];
  if (faults.length > 0) return { ...counts, late: [], failure: { faults, products } };
  return { ...counts, late: slow, failure: undefined };
}

/** Runs products that were too slow again; each block of an event loop has to come of one of them alone. */
async function stillSlow(arena: Arena, products: readonly Product[]): Promise<readonly string[]> {
  let faults: readonly string[] = [];
  for (let attempt = 1; attempt < ATTEMPTS; attempt += 1) {
    const { wrong, slow } = await arena.round(products);
    if (wrong.length > 0) return wrong;
    faults = slow;
    if (faults.length === 0) return [];
  }
  if (!faults.some((fault) => fault.startsWith('the event loop'))) return faults;
  const blocks: string[] = [];
  for (const product of products) blocks.push(...(await blocksAlone(arena, product)));
  return [...faults.filter((fault) => !fault.startsWith('the event loop')), ...blocks];
}

async function blocksAlone(arena: Arena, product: Product): Promise<readonly string[]> {
  let found: readonly string[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    found = await arena.blocksOf(product);
    if (found.length === 0) return [];
  }
  return found;
}

/** Looks for fewer requests, and for fewer corners of each, with which something is still wrong. */
export async function shrink(arena: Arena, { products, faults }: Failure): Promise<Failure> {
  let shortest: Failure = { products, faults };
  const attempt = async (fewer: readonly Product[]): Promise<boolean> => {
    const found = await faultsOf(arena, fewer);
    if (found.length > 0) shortest = { products: fewer, faults: found };
    return found.length > 0;
  };
  for (const product of products) {
    if (products.length > 1 && (await attempt([product]))) break;
  }
  for (let index = 0; shortest.products.length > 1 && index < shortest.products.length; ) {
    if (!(await attempt(shortest.products.toSpliced(index, 1)))) index += 1;
  }
  for (const [index, product] of shortest.products.entries()) {
    let kept = product;
    for (const corner of product.corners) {
      if (kept.corners.length < 2) break;
      const fewer = { ...kept, corners: kept.corners.filter((one) => one !== corner) };
      if (await attempt(shortest.products.toSpliced(index, 1, fewer))) kept = fewer;
    }
  }
  return shortest;
}

async function faultsOf(arena: Arena, products: readonly Product[]): Promise<readonly string[]> {
  await arena.restart();
  const { wrong, slow } = await arena.round(products);
  if (wrong.length > 0 || slow.length === 0) return wrong;
  return await stillSlow(arena, products);
}

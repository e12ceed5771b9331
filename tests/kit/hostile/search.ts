import { seededRandom } from '../random.ts';
import type { Arena, Verdict } from './arena.ts';
import { describeProduct, isCostlyRead, type Product, productsOf } from './product.ts';

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
  /** Too slow while others used the machine. */
  readonly unjudged: readonly string[];
}

/** A round is too slow when it was so each time. */
const ATTEMPTS = 3;

/** Runs the round of a seed. */
export async function runSeed(arena: Arena, seed: number): Promise<RoundOutcome> {
  const products = productsOf(seed, seededRandom(seed));
  const verdict = await arena.round(products);
  const { responses, unavailable, slow, blocked, unjudged } = verdict;
  const faults = await confirmed(arena, products, verdict);
  const failure = faults.length > 0 ? { faults, products } : undefined;
  return { responses, unavailable, failure, late: failure ? [] : [...slow, ...blocked], unjudged };
}

/** What is wrong for sure: what is too slow has to be so again, and a request that blocks an event loop does so alone. */
async function confirmed(arena: Arena, products: readonly Product[], first: Verdict): Promise<readonly string[]> {
  if (first.wrong.length > 0) return first.wrong;
  const blocks: string[] = [];
  // The reads that cost the most are always tried alone: beside others, a block may look as if the process had no processor.
  const suspects = first.blocked.length > 0 ? products : products.filter(isCostlyRead);
  for (const product of suspects) blocks.push(...(await blocksAlone(arena, product)));
  if (blocks.length > 0) return blocks;
  let { slow } = first;
  for (let attempt = 1; attempt < ATTEMPTS && slow.length > 0; attempt += 1) {
    const verdict = await arena.round(products);
    if (verdict.wrong.length > 0) return verdict.wrong;
    slow = verdict.slow;
  }
  return slow;
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
  // Most faults name their request.
  const isNamed = (product: Product) => faults.some((fault) => fault.startsWith(describeProduct(product)));
  const suspects = products.toSorted((one, other) => Number(isNamed(other)) - Number(isNamed(one)));
  for (const product of suspects) {
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
  return await confirmed(arena, products, await arena.round(products));
}

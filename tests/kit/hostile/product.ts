import { ALERT_DOORS } from './alerts.ts';
import { DOCUMENT_DOORS } from './documents.ts';
import type { BuiltRequest, Door, Doors, HostileService } from './door.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { operationalDoors } from './operational.ts';
import { POSTHOG_DOORS } from './posthog.ts';
import { QUERY_DOORS } from './queries.ts';
import { STATEMENT_DOORS } from './statements.ts';
import { SUBMISSION_DOORS } from './submissions.ts';
import { below, pick, type Random } from './texts.ts';
import { TRENCH_DOORS } from './trench.ts';
import { WEBHOOK_DOORS } from './webhooks.ts';

/** Where a request stands to a limit. */
export const LEVELS = ['under', 'at', 'over'] as const;

export type Level = (typeof LEVELS)[number];

/** A limit, and where a request stands to it. */
export interface Corner {
  readonly limit: LimitId;
  readonly level: Level;
}

/** One request: a door, the corners it stands in, and what its texts are made from. */
export interface Product {
  readonly door: string;
  readonly corners: readonly Corner[];
  readonly seed: number;
}

const DOORS_OF: Readonly<Record<HostileService, Doors>> = {
  'ingest-api': { ...operationalDoors('ingest-api'), ...SUBMISSION_DOORS, ...POSTHOG_DOORS },
  'query-api': {
    ...operationalDoors('query-api'),
    ...{ ...QUERY_DOORS, ...STATEMENT_DOORS, ...DOCUMENT_DOORS, ...WEBHOOK_DOORS, ...ALERT_DOORS },
  },
  'trench-api': { ...operationalDoors('trench-api'), ...TRENCH_DOORS },
};

/** The doors of all services, by service, method and path. */
export const DOORS: Readonly<Record<string, Door>> = Object.fromEntries(
  Object.entries(DOORS_OF).flatMap(([service, doors]) =>
    Object.entries(doors).map(([route, door]) => [`${service} ${route}`, door]),
  ),
);

/** The routes to which some door leads. */
export const ROUTES: readonly string[] = Object.entries(DOORS_OF).flatMap(([service, doors]) =>
  Object.entries(doors).flatMap(([route, { also = [] }]) => [route, ...also].map((one) => `${service} ${one}`)),
);

const DOOR_NAMES = Object.keys(DOORS);

/** Every limit at every level, by itself, at every door. */
export const SINGLES: readonly Omit<Product, 'seed'>[] = Object.entries(DOORS).flatMap(([door, { limits }]) => [
  ...limits.flatMap((limit) => LEVELS.map((level) => ({ door, corners: [{ limit, level }] }))),
  ...(limits.length === 0 ? [{ door, corners: [] }] : []),
]);

/** How many products of a round stand in a single corner, and how many in two or three. */
const SINGLES_OF_ROUND = 8;
const RANDOM_OF_ROUND = 3;

/** What makes the services read and write the most. Each round has all of it. */
const COSTLY: readonly Omit<Product, 'seed'>[] = [
  { door: 'query-api GET /events/properties', corners: [] },
  { door: 'query-api GET /events/values', corners: [] },
  { door: 'query-api GET /events/stream', corners: [] },
  { door: 'ingest-api POST /v1/public/userGroups', corners: [{ limit: 'eventBytes', level: 'at' }] },
];

/** Coprime to the number of singles, so that the seeds that follow one another take all of them, far apart. */
const STRIDE = 7_919;

/**
 * Returns the products of a round: single corners, which the seeds take in turn, random products of two or three, and
 * what costs the most.
 */
export function productsOf(seed: number, random: Random): readonly Product[] {
  const textSeed = () => below(random, 1_000_000_000);
  return [
    ...singlesOf(seed).map((single): Product => ({ ...single, seed: textSeed() })),
    ...Array.from({ length: RANDOM_OF_ROUND }, (): Product => ({ ...randomProduct(random), seed: textSeed() })),
    ...COSTLY.map((costly): Product => ({ ...costly, seed: textSeed() })),
  ];
}

/** Whether a product is one of the reads of {@link COSTLY}, which have no corners. */
export function isCostlyRead({ door, corners }: Product): boolean {
  return corners.length === 0 && COSTLY.some((costly) => costly.door === door);
}

/** The single corners of a round. */
export function singlesOf(seed: number): readonly Omit<Product, 'seed'>[] {
  const first = seed * SINGLES_OF_ROUND;
  return Array.from(
    { length: SINGLES_OF_ROUND },
    (_, index) => SINGLES[((first + index) * STRIDE) % SINGLES.length],
  ).filter((single) => single !== undefined);
}

function randomProduct(random: Random): Omit<Product, 'seed'> {
  const door = pick(random, DOOR_NAMES);
  const limits = [...(DOORS[door]?.limits ?? [])];
  const corners: Corner[] = [];
  for (let count = 2 + below(random, 2); count > 0 && limits.length > 0; count -= 1) {
    const [limit] = limits.splice(below(random, limits.length), 1) as [LimitId];
    // Mostly within the limits: what is refused early costs little.
    const level = random() < 0.15 ? 'over' : random() < 0.25 ? 'under' : 'at';
    corners.push({ limit, level });
  }
  return { door, corners };
}

/** Creates the request of a product. */
export function build({ door, corners, seed }: Product): BuiltRequest {
  const known = DOORS[door];
  if (!known) throw new Error(`there is no door "${door}"`);
  return known.build(new Map(corners.map(({ limit, level }) => [limit, levelOf(limit, level)])), seed);
}

function levelOf(limit: LimitId, level: Level): number {
  return LIMITS[limit].max + LEVELS.indexOf(level) - LEVELS.indexOf('at');
}

/** Writes a product as a person reads it. */
export function describeProduct({ door, corners, seed }: Product): string {
  const standing = corners.map(({ limit, level }) => `${limit} ${level} its limit`);
  return `${door}: ${standing.join(', ') || 'as it is'} (texts from ${seed})`;
}

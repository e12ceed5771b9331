// What the example data are: the users of a made-up product, and what they did until now.

const DAY_MS = 86_400_000;

/** How far back the example goes, in days: Home compares a day with the same weekday of four weeks. */
const DAYS = 56;

const FIRST_NAMES = ['Ada', 'Bao', 'Carmen', 'Dilek', 'Emil', 'Fatou', 'Gita', 'Hugo', 'Ines', 'Jonas'];
const LAST_NAMES = ['Okafor', 'Lindqvist', 'Moreau'];
const PLANS = ['free', 'free', 'team', 'team', 'business'] as const;
const COUNTRIES = ['DE', 'FR', 'IN', 'BR', 'US'];
const FEATURES = ['search', 'comments', 'export', 'reports'];

/** How many minor things a user of a plan does on a day that it is there. */
const DILIGENCE: Readonly<Record<(typeof PLANS)[number], number>> = { free: 3, team: 6, business: 9 };

/** The errors of one day stand out: this is how many days ago that was. */
const BAD_DAY = 1;

/** A call as clients of Segment send it. */
export interface ExampleCall {
  readonly type: 'identify' | 'track';
  readonly messageId: string;
  readonly userId: string;
  readonly timestamp: string;
  readonly event?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly traits?: Readonly<Record<string, unknown>>;
}

interface ExampleUser {
  readonly id: string;
  readonly plan: (typeof PLANS)[number];
  /** How many days ago it signed up. */
  readonly since: number;
  readonly traits: Readonly<Record<string, unknown>>;
}

/** No user of somebody is called so. */
const USERS: readonly ExampleUser[] = Array.from({ length: FIRST_NAMES.length * LAST_NAMES.length }, (_, index) => {
  const [first, last] = [FIRST_NAMES[index % FIRST_NAMES.length], LAST_NAMES[index % LAST_NAMES.length]];
  const plan = PLANS[index % PLANS.length] ?? 'free';
  const id = `sluice-example-${String(index + 1).padStart(2, '0')}`;
  const country = COUNTRIES[(index * 7) % COUNTRIES.length];
  const email = `${id}@example.com`;
  // The first half was there before the example begins.
  const since = index < 15 ? DAYS - 1 : DAYS - 1 - 3 * (index - 14);
  return { id, plan, since, traits: { name: `${first} ${last}`, email, plan, country } };
});

/** The identifiers of all users of the example. Nothing in it is without one of them. */
export const EXAMPLE_USERS: readonly string[] = USERS.map(({ id }) => id);

/**
 * Returns the example as it is at a time. A call that is in it at two times of a day of UTC has the same `messageId` in both, so
 * that it is stored once.
 *
 * @param now in milliseconds since 1970; no call is later
 */
export function exampleCalls(now: number): readonly ExampleCall[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  return USERS.flatMap((user, index) => callsOf(user, index, today)).filter(
    ({ timestamp }) => Date.parse(timestamp) <= now,
  );
}

function callsOf({ id, plan, since, traits }: ExampleUser, index: number, today: number): ExampleCall[] {
  const random = seeded(index + 1);
  const calls: ExampleCall[] = [];
  for (let ago = since; ago >= 0; ago -= 1) {
    const start = today - ago * DAY_MS + (7 + (index % 9)) * 3_600_000;
    const at = (minutes: number) => new Date(start + minutes * 60_000).toISOString();
    const add = (event: string, properties: Readonly<Record<string, unknown>>) => {
      const messageId = `${id}-${since - ago}-${calls.length}`;
      calls.push({ type: 'track', messageId, userId: id, event, properties, timestamp: at(calls.length % 50) });
    };
    if (ago === since) {
      calls.push({ type: 'identify', messageId: `${id}-traits`, userId: id, traits, timestamp: at(0) });
      add('signed_up', { source: pick(random, ['search', 'friend', 'advert']) });
    }
    const errors = ago === BAD_DAY ? 2 : Number(random() < 0.04);
    for (let error = 0; error < errors; error += 1)
      add('error_shown', { code: ago === BAD_DAY ? 'timeout' : 'offline' });
    const isWeekend = [0, 6].includes(new Date(start).getUTCDay());
    if (random() > (isWeekend ? 0.2 : 0.7)) continue;
    add('page_viewed', { path: pick(random, ['/', '/projects', '/settings']) });
    const things = Math.ceil(random() * DILIGENCE[plan]);
    for (let thing = 0; thing < things; thing += 1) add('feature_used', { feature: pick(random, FEATURES), plan });
    if (random() < 0.15) add('project_created', { plan });
    if (random() < 0.05) add('teammate_invited', { plan });
    if (plan !== 'free' && ago % 28 === index % 28) add('invoice_paid', { plan, amount: plan === 'team' ? 29 : 99 });
  }
  return calls;
}

function pick<Item>(random: () => number, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

/** Returns numbers from 0 to below 1 that follow from a seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed * 0x9e37_79b9;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

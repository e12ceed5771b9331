/** What a test lets a client of PostHog do. Dates are `Date`, or `datetime` in Python. */
export type PosthogStep =
  | {
      readonly do: 'capture';
      readonly distinctId: string;
      readonly event: string;
      readonly properties: Readonly<Record<string, unknown>>;
      readonly groups?: Readonly<Record<string, string | number>>;
      /** Default: the client's own clock. */
      readonly timestamp?: Date;
    }
  | {
      readonly do: 'identify';
      readonly distinctId: string;
      readonly anonymousId: string;
      readonly set: Readonly<Record<string, unknown>>;
      readonly setOnce: Readonly<Record<string, unknown>>;
    }
  | {
      readonly do: 'group';
      readonly type: string;
      readonly key: string;
      readonly properties: Readonly<Record<string, unknown>>;
    }
  | { readonly do: 'alias'; readonly distinctId: string; readonly alias: string };

export const USER = 'ada@example.com';
export const VISITOR = 'visitor-1';
export const OTHER = 'visitor-2';
export const COMPANY = 'acme';

const minute = (index: number) => new Date(Date.UTC(2026, 2, 1, 12, index, 0, 123));

export const ORDER = {
  total: 99.95,
  count: 0,
  coupon: null,
  note: 'größer "als" \\ 日本語\n',
  products: [
    { sku: 'G-32', price: 18.99, options: { colour: 'rot' } },
    { sku: 'F-48', options: [] },
  ],
};

/** A visitor becomes a user, who buys, belongs to a company, changes, has another identifier, and leaves. */
export const STEPS = [
  {
    do: 'capture',
    distinctId: VISITOR,
    event: 'Landed',
    properties: { from: 'ad', $process_person_profile: false },
    timestamp: minute(0),
  },
  {
    do: 'identify',
    distinctId: USER,
    anonymousId: VISITOR,
    set: { name: 'Ada Lovelace 🧮', visits: 12.5, address: { city: 'Zürich', tags: ['a', { deep: [1, null] }] } },
    setOnce: { via: 'ad', nothing: null },
  },
  { do: 'group', type: 'company', key: COMPANY, properties: { name: 'Acme & Söhne', seats: 7 } },
  {
    do: 'capture',
    distinctId: USER,
    event: 'Order Completed ✓',
    properties: ORDER,
    groups: { company: COMPANY },
    timestamp: minute(1),
  },
  {
    do: 'capture',
    distinctId: USER,
    event: 'Plan Changed',
    properties: { $set: { plan: 'pro' }, $set_once: { via: 'later', first_plan: 'free' }, $unset: ['old'] },
    timestamp: minute(2),
  },
  { do: 'alias', distinctId: USER, alias: OTHER },
  { do: 'capture', distinctId: USER, event: 'Signed Out', properties: {} },
] as const satisfies readonly PosthogStep[];

/** Returns `count` events, which carry their index in their properties. */
export function countedSteps(count: number): PosthogStep[] {
  return Array.from({ length: count }, (_, index) => ({
    do: 'capture',
    distinctId: USER,
    event: 'counted',
    properties: { index },
  }));
}

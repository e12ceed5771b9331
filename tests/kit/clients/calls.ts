/** A call as the methods of the clients take it. Dates are `Date`, or `datetime` in Python. */
export interface TestCall {
  readonly type: 'identify' | 'track' | 'group' | 'page' | 'screen' | 'alias';
  readonly userId?: string;
  readonly anonymousId?: string;
  readonly previousId?: string;
  readonly groupId?: string;
  readonly event?: string;
  readonly name?: string;
  readonly category?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly traits?: Readonly<Record<string, unknown>>;
  /** Default: the client's own clock. */
  readonly timestamp?: Date;
}

export const USER = 'ada@example.com';
export const STRANGER = 'anonymous-1';
export const ORGANIZATION = 'acme';

const minute = (index: number) => new Date(Date.UTC(2026, 2, 1, 12, index, 0, 123));

/** One call of each type, and a second track call without a timestamp. */
export const CALLS: readonly TestCall[] = [
  {
    type: 'identify',
    userId: USER,
    anonymousId: STRANGER,
    traits: {
      name: 'Ada Lovelace 🧮',
      visits: 12.5,
      active: true,
      born: new Date(Date.UTC(2015, 11, 10)),
      address: { city: 'Zürich', tags: ['a', { deep: [1, null, 'ß'] }], empty: {} },
      trial: null,
    },
    timestamp: minute(0),
  },
  {
    type: 'track',
    event: 'Order Completed ✓',
    userId: USER,
    anonymousId: STRANGER,
    properties: {
      total: 99.95,
      count: 0,
      coupon: null,
      paid: false,
      shippedOn: new Date(Date.UTC(2026, 2, 2, 8, 30)),
      note: 'größer "als" \\ 日本語\n',
      products: [
        { sku: 'G-32', price: 18.99, options: { colour: 'rot' } },
        { sku: 'F-48', options: [] },
      ],
    },
    timestamp: minute(1),
  },
  {
    type: 'group',
    userId: USER,
    anonymousId: STRANGER,
    groupId: ORGANIZATION,
    traits: { name: 'Acme & Söhne', seats: 7, owner: { id: USER }, plan: null },
    timestamp: minute(2),
  },
  {
    type: 'page',
    userId: USER,
    anonymousId: STRANGER,
    category: 'Docs',
    name: 'Producers',
    properties: { url: 'https://example.com/docs?q=%C3%BC', depth: 3 },
    timestamp: minute(3),
  },
  {
    type: 'screen',
    anonymousId: STRANGER,
    name: 'Welcome',
    category: 'Onboarding',
    properties: { step: 1 },
    timestamp: minute(4),
  },
  { type: 'alias', userId: USER, previousId: STRANGER, timestamp: minute(5) },
  { type: 'track', event: 'Signed Out', userId: USER, anonymousId: STRANGER },
];

/** Returns `count` track calls, which carry their index in their properties. */
export function trackCalls(count: number, userId: string): TestCall[] {
  return Array.from({ length: count }, (_, index) => ({
    type: 'track',
    event: 'counted',
    userId,
    properties: { index },
  }));
}

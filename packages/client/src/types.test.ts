import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import type { ClientError } from './calls.ts';
import { createClient } from './client.ts';

const NOWHERE = { url: 'http://127.0.0.1:9', key: 'k', onError: () => undefined };

interface Events {
  signed_up: { plan: string };
  logged_out: { reason?: string };
}

test('a map of types says which events there are, and which properties they have', async () => {
  const client = createClient<Events>(NOWHERE);
  client.track('signed_up', { plan: 'pro' }, { userId: 'jane' });
  client.track('logged_out');
  client.track('logged_out', { reason: 'idle' });
  // @ts-expect-error there is no such event
  client.track('signed_out', { plan: 'pro' });
  // @ts-expect-error the plan is missing
  client.track('signed_up');
  // @ts-expect-error the plan is a string
  client.track('signed_up', { plan: 1 });
  expect(await client.close({ timeoutMs: 0 })).toBe(6);
});

test('without a map any event may have any properties', async () => {
  const client = createClient(NOWHERE);
  client.track('anything');
  client.track('anything', { at: ['all', { of: 1 }] });
  // @ts-expect-error an event has a name
  client.track(5);
  expect(await client.close({ timeoutMs: 0 })).toBe(3);
});

const schemas = { signed_up: z.object({ plan: z.string(), seats: z.number().optional() }) };

test('schemas are a map of types as well', async () => {
  const client = createClient({ ...NOWHERE, schemas });
  client.track('signed_up', { plan: 'pro' });
  // @ts-expect-error the plan is a string
  client.track('signed_up', { plan: 1 });
  // @ts-expect-error there is no such event
  client.track('signed_out', {});
  expect(await client.close({ timeoutMs: 0 })).toBe(3);
});

async function errorsOf(environment: string | undefined): Promise<ClientError[]> {
  vi.stubEnv('NODE_ENV', environment);
  onTestFinished(() => void vi.unstubAllEnvs());
  const errors: ClientError[] = [];
  const client = createClient<Record<string, object>>({ ...NOWHERE, onError: (error) => errors.push(error), schemas });
  client.track('signed_up', { plan: 'pro' });
  client.track('signed_up', { plan: 1, seats: '2' });
  client.track('unknown', { plan: 1 });
  expect(await client.close({ timeoutMs: 0 }), 'an invalid call is sent all the same').toBe(3);
  return errors.filter(({ code }) => code === 'invalid_properties');
}

test('in development, properties that do not fit their schema are reported', async () => {
  const errors = await errorsOf('development');
  expect(errors).toMatchObject([{ code: 'invalid_properties', dropped: 0 }]);
  expect(errors[0]?.message).toMatch(/^signed_up: .*"plan".*"seats"/s);
  expect(await errorsOf(undefined)).toHaveLength(1);
});

test('in production no schema is used', async () => {
  expect(await errorsOf('production')).toEqual([]);
});

// Makes calls with @segment/analytics-node, in a process of its own.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestCall } from '../calls.ts';
import { printOutcome, readInput } from './program.ts';

type Callback = (error: unknown) => void;
type Analytics = Record<TestCall['type'], (call: Omit<TestCall, 'type'>, callback: Callback) => void> & {
  on(name: 'error', listener: (error: { code: string; reason?: unknown }) => void): void;
  closeAndFlush(options: { timeout: number }): Promise<void>;
};
interface SegmentModule {
  readonly Analytics: new (settings: object) => Analytics;
}

const { url, key, calls, paceMs, module, folder } = readInput();
const { Analytics } = createRequire(join(folder, 'index.js'))(module) as SegmentModule;
const errors: string[] = [];
const delivered: number[] = [];

const analytics = new Analytics({ writeKey: key, host: url, flushAt: 3, flushInterval: 500 });
analytics.on('error', ({ code, reason }) => errors.push(`${code}: ${reason}`));
for (const [index, { type, ...call }] of calls.entries()) {
  analytics[type](call, (error) => {
    if (!error) delivered.push(index);
  });
  await delay(paceMs);
}
await analytics.closeAndFlush({ timeout: 60_000 });
printOutcome({ errors, delivered });

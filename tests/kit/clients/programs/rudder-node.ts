// Makes calls with @rudderstack/rudder-sdk-node, in a process of its own.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestCall } from '../calls.ts';
import { printOutcome, readInput } from './program.ts';

type Callback = (error: unknown) => void;
type Analytics = Record<TestCall['type'], (call: object, callback: Callback) => void> & {
  flush(): Promise<unknown>;
};
type RudderModule = new (key: string, options: object) => Analytics;

const { url, key, calls, paceMs, module, folder } = readInput();
const RudderAnalytics = createRequire(join(folder, 'index.js'))(module) as RudderModule;
const errors: string[] = [];
const delivered: number[] = [];
let open = calls.length;

const analytics = new RudderAnalytics(key, {
  dataPlaneUrl: url,
  flushAt: 3,
  flushInterval: 500,
  logLevel: 'error',
  errorHandler: (error: unknown) => errors.push(String(error)),
});
for (const [index, { type, timestamp, ...call }] of calls.entries()) {
  analytics[type]({ ...call, ...(timestamp && { originalTimestamp: timestamp }) }, (error) => {
    open -= 1;
    if (!error) delivered.push(index);
  });
  await delay(paceMs);
}
while (open > 0) {
  await analytics.flush();
  await delay(50);
}
printOutcome({ errors, delivered });

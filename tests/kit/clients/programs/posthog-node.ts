// Sends events with posthog-node, in a process of its own.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PosthogStep } from '../posthog/steps.ts';
import { type Program, printOutcome, readInput } from './program.ts';

interface PostHog {
  on(name: 'error', listener: (error: unknown) => void): void;
  capture(event: object): void;
  identify(user: object): void;
  groupIdentify(group: object): void;
  alias(alias: object): void;
  shutdown(timeoutMs: number): Promise<void>;
}
interface PosthogModule {
  readonly PostHog: new (key: string, options: object) => PostHog;
}

const { url, key, calls, paceMs, module, folder } = readInput<Program<PosthogStep>>();
const { PostHog } = createRequire(join(folder, 'index.js'))(module) as PosthogModule;
const errors: string[] = [];

const client = new PostHog(key, { host: url, flushAt: 3, flushInterval: 500 });
client.on('error', (error) => errors.push(String(error)));
for (const step of calls) {
  switch (step.do) {
    case 'capture': {
      const { do: _, ...event } = step;
      client.capture(event);
      break;
    }
    case 'identify': {
      const { distinctId, anonymousId, set, setOnce } = step;
      const properties = { $set: set, $set_once: setOnce, $anon_distinct_id: anonymousId };
      client.identify({ distinctId, properties });
      break;
    }
    case 'group':
      client.groupIdentify({ groupType: step.type, groupKey: step.key, properties: step.properties });
      break;
    case 'alias':
      client.alias({ distinctId: step.distinctId, alias: step.alias });
  }
  await delay(paceMs);
}
await client.shutdown(60_000);
printOutcome({ errors, delivered: errors.length === 0 ? [...calls.keys()] : [] });

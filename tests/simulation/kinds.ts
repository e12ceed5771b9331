import { BALANCER } from './balancer/kind.ts';
import { INGEST } from './ingest/kind.ts';
import { MIRRORS, RANGES } from './mirrors/kind.ts';
import { PIPELINE } from './pipeline/kind.ts';
import { REPLICATED } from './replicated/kind.ts';
import { SHARED } from './shared/kind.ts';
import { WEBHOOKS } from './webhooks/kind.ts';
import type { Kind } from './world/run-schedule.ts';
import { WRITER } from './writer/kind.ts';

/** All that `npm run simulate` runs. */
export const KINDS: readonly Kind[] = [
  WRITER,
  BALANCER,
  REPLICATED,
  SHARED,
  INGEST,
  PIPELINE,
  MIRRORS,
  RANGES,
  WEBHOOKS,
];

import type { Logger } from '@sluice/shared/base/log';
import type { MemoryBudget } from '@sluice/shared/http/memory-budget';
import type { Views } from '../manage/manage.ts';
import type { ReadDependencies, Stores } from '../store/store.ts';
import { LogClock } from '../stream/stream.ts';
import type { StoredWebhook } from '../webhooks/webhooks.ts';
import type { AlertMetrics } from './alert-metrics.ts';
import { alertSources } from './alert-source.ts';
import { digestSources } from './digest-source.ts';
import { ViewNumbers } from './view-numbers.ts';

/** How often the time of the log is looked at, in milliseconds. */
const LOOK_MS = 10_000;

export interface NumberSourcesOptions extends ReadDependencies {
  readonly stores: Stores;
  readonly memory: Pick<MemoryBudget, 'open'>;
  readonly views: Views;
  /** Returns what is stored of a webhook; undefined if it is deleted. */
  readonly find: (workspace: string, id: string) => Promise<StoredWebhook | undefined>;
  readonly metrics: AlertMetrics;
  readonly logger: Logger;
}

/** Returns what opens the messages about numbers, by the kinds of their webhooks. */
export function numberSources({ find, metrics, logger, ...reads }: NumberSourcesOptions) {
  const of = { clock: new LogClock(reads), numbers: new ViewNumbers(reads), find, everyMs: LOOK_MS, metrics, logger };
  return { alert: alertSources(of), digest: digestSources(of) };
}

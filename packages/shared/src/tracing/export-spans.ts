import { atMost } from '../service/retry.ts';
import { tracingSdk } from './tracer.ts';

/** How long a service that stops waits for a collector of spans at most, in milliseconds. */
const EXPORT_MS_MAX = 2_000;

/**
 * Before the process ends: exports the spans that have ended, which the SDK gathers. It gives up in time.
 *
 * @param leftMs how much time is left to end, in milliseconds
 */
export async function exportSpans(leftMs: number): Promise<void> {
  const exported = tracingSdk()?.shutdown();
  if (exported) await atMost(Math.min(leftMs / 2, EXPORT_MS_MAX), exported).catch(() => undefined);
}

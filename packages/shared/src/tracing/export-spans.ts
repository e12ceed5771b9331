import { ProxyTracerProvider, type TracerProvider, trace } from '@opentelemetry/api';
import { sleep } from '../retry.ts';

/** How long a service that stops waits for a collector of spans at most, in milliseconds. */
const EXPORT_MS_MAX = 2_000;

/**
 * Before the process ends: exports the spans that have ended, which the SDK gathers. It gives up in time.
 *
 * @param leftMs how much time is left to end, in milliseconds
 */
export async function exportSpans(leftMs: number): Promise<void> {
  const global = trace.getTracerProvider();
  const provider: Partial<Sdk> & TracerProvider = global instanceof ProxyTracerProvider ? global.getDelegate() : global;
  if (!provider.shutdown) return;
  const exported = provider.shutdown().catch(() => undefined);
  await Promise.race([exported, sleep(Math.min(leftMs / 2, EXPORT_MS_MAX))]);
}

/** What a provider of the SDK has, and the API does not know. */
interface Sdk {
  shutdown(): Promise<void>;
}

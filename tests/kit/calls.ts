import type { Pipeline } from './pipeline.ts';
import type { EventPage } from './records.ts';

/** A call of the user `ada`. */
export function track(event: string, index: number) {
  return { type: 'track', event, userId: 'ada', messageId: `${event}-${index}` };
}

/** Sends calls as one batch. */
export async function sendCalls(
  pipeline: Pipeline,
  batch: readonly object[],
): Promise<{ status: number; body: unknown; seconds: number }> {
  const start = performance.now();
  const { status, body } = await pipeline.submit<unknown>({ batch }, { path: '/v1/batch' });
  return { status, body, seconds: (performance.now() - start) / 1_000 };
}

/** Returns how many events of this name are visible. */
export async function countCalls(pipeline: Pipeline, event: string): Promise<number | null> {
  return (await pipeline.get<EventPage>(`/events?event=${event}`)).body.total;
}

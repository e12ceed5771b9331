/** Kafka's errors after which kafkajs joins the group again: the assignment is over. */
const REJOIN_ERRORS = new Set<unknown>(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

/** Returns whether kafkajs joins the group again after this error. */
export function leadsToRejoin(error: unknown): boolean {
  return error instanceof Error && 'type' in error && REJOIN_ERRORS.has(error.type);
}

/**
 * Waits for `work`, and sends a heartbeat to the group every `everyMs`. kafkajs itself sends heartbeats only between two
 * batches, so the group would take a writer that stores a large batch for dead.
 *
 * @throws what `work` throws, and kafkajs's errors when the group rejects the heartbeat; `work` may still be running then
 */
export async function withHeartbeats(
  work: Promise<unknown>,
  heartbeat: () => Promise<void>,
  everyMs: number,
): Promise<void> {
  const { promise: rejected, reject } = Promise.withResolvers<never>();
  const timer = setInterval(() => heartbeat().catch(reject), everyMs);
  await Promise.race([work, rejected]).finally(() => clearInterval(timer));
}

import { ApiError } from './api.ts';

const ATTEMPTS_MAX = 5;

/**
 * Returns what a request returns. While query-api is busy, the request is sent again after the time that query-api says, five
 * times in all.
 *
 * @param onBusy is called before each further attempt is waited for
 * @throws {ApiError} as the request does, that of the last attempt
 */
export async function patiently<Result>(
  send: () => Promise<Result>,
  signal: AbortSignal,
  onBusy?: () => void,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      const waitMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      if (waitMs === undefined || attempt === ATTEMPTS_MAX || signal.aborted) throw error;
      onBusy?.();
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
}

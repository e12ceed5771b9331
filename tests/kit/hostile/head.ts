import { LIMITS } from './limits.ts';

/** What the head of a request has besides its address and padding, in bytes, at most. */
export const OTHER_HEAD_BYTES = 512;

/**
 * Returns how long address and padding of a request are together, in bytes, whose head stands at a value of its limit. What
 * Node counts as the head differs by some bytes from what is sent, so each byte beyond the limit stands for a kibibyte.
 */
export function lengthInHead(head: number): number {
  return LIMITS.head.max + 1_024 * (head - LIMITS.head.max) - OTHER_HEAD_BYTES;
}

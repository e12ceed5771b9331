/** Where and when a request was accepted. */
export interface Acceptance {
  readonly workspace: string;
  /** In microseconds since 1970. It orders changes, and tells what came before a deletion. */
  readonly version: number;
  readonly idempotencyKey: string | undefined;
}

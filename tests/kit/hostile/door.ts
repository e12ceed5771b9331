import type { LimitId } from './limits.ts';

/** A request as it is sent. */
export interface HostileRequest {
  readonly service: 'ingest-api' | 'query-api';
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** So many of them are open at a time; the last one is judged. Default 1. */
  readonly copies?: number;
  /** The response has no end. */
  readonly endless?: boolean;
}

/** What the response to a request has to be. `503` with `Retry-After` is always allowed. */
export interface Expectation {
  /** One of these. */
  readonly statuses: readonly number[];
  /** The response has one of each of these texts: a fault has to be named. */
  readonly named: readonly (readonly string[])[];
}

export interface BuiltRequest {
  readonly request: HostileRequest;
  readonly expected: Expectation;
}

/** A route, or several that read the same. */
export interface Door {
  /** The limits that a request of this door can stand at. */
  readonly limits: readonly LimitId[];
  build(values: ReadonlyMap<LimitId, number>, seed: number): BuiltRequest;
}

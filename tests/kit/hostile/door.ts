import type { LimitId } from './limits.ts';

export type HostileService = 'ingest-api' | 'query-api' | 'trench-api';

/** The name of the tenant's segment, which requests change. */
export const HOSTILE_SEGMENT = 'hostile';

/** What the hostile tenant has before the first round: a request names it in braces, such as `/views/{view}`. */
export interface Belongings {
  readonly key: string;
  /** That of trench-api: what only the operator has. */
  readonly adminKey: string;
  readonly view: string;
  readonly dashboard: string;
  readonly link: string;
  readonly linkKey: string;
  readonly webhook: string;
  /** One whose receiver has a name that no DNS server answers for. */
  readonly silentWebhook: string;
  readonly alert: string;
  readonly digest: string;
  readonly deadLetter: string;
  /** The id of a workspace of trench-api. */
  readonly workspace: string;
  /** The address of the receivers, without a path. */
  readonly receiver: string;
}

/** A request as it is sent. In its path, its headers and its body `{view}` stands for what the tenant has. */
export interface HostileRequest {
  readonly service: HostileService;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** So many of them are open at a time; the last one is judged. Default 1. */
  readonly copies?: number;
  /** The response has no end. */
  readonly endless?: boolean;
  /** The path with which what a `201` has created is deleted: `/views/{id}`, by the members of the response. */
  readonly undo?: string;
}

/** What the response to a request has to be. `503` with `Retry-After` is always allowed. */
export interface Expectation {
  /** One of these. */
  readonly statuses: readonly number[];
  /** The response has one of each of these texts: a fault has to be named. */
  readonly named: readonly (readonly string[])[];
  /** The codes with which a `400` may refuse what is not known to be invalid. Default: those of what is too expensive. */
  readonly refusals?: readonly string[];
}

export interface BuiltRequest {
  readonly request: HostileRequest;
  readonly expected: Expectation;
}

/** A route, or several that read the same. */
export interface Door {
  /** The limits that a request of this door can stand at. */
  readonly limits: readonly LimitId[];
  /** Other routes to which its requests are sent as well, such as shorter names of the same. Default none. */
  readonly also?: readonly string[];
  build(values: ReadonlyMap<LimitId, number>, seed: number): BuiltRequest;
}

/** The doors of a service, by method and path as its OpenAPI document has them. */
export type Doors = Readonly<Record<string, Door>>;

/** A route that takes nothing to stand at a limit. */
export function plainDoor(
  request: Omit<HostileRequest, 'headers'> & Partial<Pick<HostileRequest, 'headers'>>,
  statuses: readonly number[] = [200],
): Door {
  return {
    limits: [],
    build: () => ({ request: { headers: {}, ...request }, expected: { statuses, named: [] } }),
  };
}

import { setTimeout as delay } from 'node:timers/promises';
import { v7 as uuidV7 } from 'uuid';
import type { Pipeline } from './pipeline.ts';
import { seededRandom } from './random.ts';

export interface LoadOptions {
  readonly pipeline: Pick<Pipeline, 'key'>;
  /** Where to submit; requests go to each in turn. */
  readonly urls: () => readonly string[];
  /** How many clients submit at once. */
  readonly concurrency: number;
  /** Decides what is submitted. Default 1. */
  readonly seed?: number;
  /** How long a client waits between two requests at most, in milliseconds. Default 0. */
  readonly pauseMs?: number;
}

export interface SentEvent {
  readonly uuid: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

/** What a client wanted, in words of the reference that the stored state is compared with. */
export type Action =
  | { readonly kind: 'events'; readonly user: string; readonly group: string; readonly events: readonly SentEvent[] }
  | {
      readonly kind: 'set';
      readonly entity: 'user' | 'organization';
      readonly id: string;
      readonly property: string;
      /** `null` removes the property. */
      readonly value: number | null;
    }
  | { readonly kind: 'delete'; readonly user: string };

/** An action and what became of it. Each user and organization belongs to one client, which waits for every answer. */
export interface Operation {
  readonly action: Action;
  /** When it was begun, in milliseconds since 1970. */
  readonly at: number;
  outcome: 'under way' | 'accepted' | 'unknown';
  /** When its last attempt was answered or given up. */
  endedAt: number;
  /**
   * Accepted at the first attempt. Otherwise an attempt whose answer never came may take effect at any later time, and
   * once more than one did.
   */
  clear: boolean;
}

/** What became of a load. */
export interface Tally {
  /** Begins the names of its users and organizations. */
  readonly name: string;
  /** In the order in which each client did them. */
  readonly operations: readonly Operation[];
  /** Uuids of events that were answered with 202. */
  readonly accepted: ReadonlySet<string>;
  /** Answers that a client may not repeat, which there must be none of. */
  readonly refused: readonly string[];
}

/** A load that runs until it is stopped, or disposed of when a test fails. */
export interface Load extends AsyncDisposable {
  /** How many events have been acknowledged. */
  acceptedSoFar(): number;
  stop(): Promise<Tally>;
}

/** A request that was not answered with 202 is sent again this often, as a client would. */
const ATTEMPTS = 5;

/** A client gives an answer up after this long, in milliseconds. */
const PATIENCE_MS = 15_000;

const USERS_PER_CLIENT = 6;
const DAY_MS = 86_400_000;

let loads = 0;

/**
 * Submits what products submit: events of now and of the past months, the same ones again, properties of users and
 * organizations, deletions. Each request is repeated until it is accepted or its attempts are used up.
 */
export function startLoad({ pipeline, urls, concurrency, seed = 1, pauseMs = 0 }: LoadOptions): Load {
  loads += 1;
  const name = `load-${process.pid}-${loads}`;
  const operations: Operation[] = [];
  const accepted = new Set<string>();
  const refused: string[] = [];
  let running = true;
  let turn = 0;

  async function attempt(path: string, body: unknown): Promise<boolean> {
    const targets = urls();
    turn += 1;
    try {
      const response = await fetch(`${targets[turn % targets.length]}${path}`, {
        method: body === undefined ? 'DELETE' : 'POST',
        body: body === undefined ? null : JSON.stringify(body),
        headers: {
          authorization: `Bearer ${pipeline.key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      const text = await response.text();
      if (response.status === 202) return true;
      const retryable = response.status === 503 && /^\d+$/.test(response.headers.get('retry-after') ?? '');
      if (!retryable) refused.push(`${response.status} ${text}`);
    } catch {
      // A cut connection or no answer: whether the rows were kept is not known.
    }
    return false;
  }

  async function carryOut(operation: Operation): Promise<void> {
    const [path, body] = requestOf(operation.action);
    for (let attempts = 0; attempts < ATTEMPTS; attempts += 1) {
      if (await attempt(path, body)) {
        operation.outcome = 'accepted';
        operation.clear = attempts === 0;
        if (operation.action.kind === 'events') for (const { uuid } of operation.action.events) accepted.add(uuid);
        return;
      }
      await delay(200);
    }
    operation.outcome = 'unknown';
  }

  async function runClient(index: number): Promise<void> {
    const random = seededRandom(seed * 1_000 + index);
    const draw = createDraw(`${name}-${index}`, random);
    while (running) {
      if (pauseMs > 0) await delay(random() * pauseMs);
      const operation: Operation = { action: draw(), at: Date.now(), outcome: 'under way', endedAt: 0, clear: false };
      operations.push(operation);
      await carryOut(operation);
      operation.endedAt = Date.now();
    }
  }

  const clients = Array.from({ length: concurrency }, (_, index) => runClient(index));

  async function stop(): Promise<Tally> {
    running = false;
    await Promise.all(clients);
    return { name, operations, accepted, refused };
  }

  return {
    acceptedSoFar: () => accepted.size,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

/** Draws what a client does next. */
function createDraw(client: string, random: () => number): () => Action {
  const below = (count: number) => Math.floor(random() * count);
  const sent: (Action & { kind: 'events' })[] = [];
  const group = `${client}-g`;
  let counter = 0;

  function drawEvent(): SentEvent {
    // Some are late by up to two months, so that batches have parts in several.
    const timestamp = random() < 0.05 ? Date.now() - below(60) * DAY_MS : Date.now() - below(2_000);
    return { uuid: uuidV7({ msecs: timestamp }), timestamp };
  }

  return () => {
    const chance = random();
    const user = `${client}-u${below(USERS_PER_CLIENT)}`;
    const again = sent[below(sent.length)];
    counter += 1;
    if (chance < 0.1 && again) return again;
    if (chance < 0.2) {
      const value = random() < 0.1 ? null : counter;
      const property = `p${below(3)}`;
      return random() < 0.5
        ? { kind: 'set', entity: 'user', id: user, property, value }
        : { kind: 'set', entity: 'organization', id: group, property, value };
    }
    if (chance < 0.203) return { kind: 'delete', user };
    const action = { kind: 'events' as const, user, group, events: Array.from({ length: 1 + below(9) }, drawEvent) };
    sent.push(action);
    return action;
  };
}

/** The path, and the body of a POST; a DELETE has none. */
function requestOf(action: Action): [path: string, body: unknown] {
  switch (action.kind) {
    case 'events': {
      const { user, group } = action;
      const events = action.events.map(({ uuid, timestamp }) => ({
        event: 'load',
        uuid,
        timestamp: new Date(timestamp).toISOString(),
        properties: { uuid },
      }));
      return ['/v1/public/userGroups', { foreignUserGroupId: group, foreignUserId: user, events }];
    }
    case 'set': {
      const properties = { [action.property]: action.value };
      return action.entity === 'user'
        ? ['/v1/public/users', { foreignId: action.id, properties }]
        : ['/v1/public/userGroups', { foreignUserGroupId: action.id, properties }];
    }
    case 'delete':
      return [`/v1/users?foreignId=${encodeURIComponent(action.user)}`, undefined];
  }
}

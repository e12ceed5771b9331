import { setTimeout as delay } from 'node:timers/promises';
import { v4 as uuidV4, v7 as uuidV7 } from 'uuid';
import type { Pipeline } from './pipeline.ts';
import { seededRandom } from './random.ts';

export interface LoadOptions {
  readonly pipeline: Pick<Pipeline, 'key'>;
  /** Where to submit; requests go to each in turn. */
  readonly urls: () => readonly string[];
  /** How many clients submit at once. */
  readonly concurrency: number;
  /** The same seed submits the same things. Default 1. */
  readonly seed?: number;
  /**
   * The longest pause of a client between two requests, in milliseconds. Default 700: without pauses, a load would take
   * all processors and show no more. A client pauses at least as long as its last request took, up to a second, so that
   * a busy machine gets a smaller load.
   */
  readonly pauseMs?: number;
  /** Begins the names of its users and organizations. Default: a name that no other load has. */
  readonly name?: string;
  /** Whether some users get what is set once, and deletions with a time. Default true. */
  readonly setsOnce?: boolean;
}

export interface SentEvent {
  /** Tells it from all others; it travels in the event's properties. */
  readonly key: string;
  /** Absent: it is made from the `Idempotency-Key` of the request. */
  readonly uuid?: string;
  /** Milliseconds since 1970. Absent: the event is stamped when it is received. */
  readonly timestamp?: number;
}

/** What a client asked for. What is stored is compared with these. */
export type Action =
  | {
      readonly kind: 'events';
      /** Empty: nobody. */
      readonly user: string;
      readonly group: string;
      readonly events: readonly SentEvent[];
      readonly idempotencyKey?: string;
      /** When it was first sent, in milliseconds since 1970: the same again is the same action. */
      readonly firstAt: number;
    }
  | {
      readonly kind: 'set';
      readonly entity: 'user' | 'organization';
      readonly id: string;
      readonly property: string;
      /** `null` removes the property. */
      readonly value: number | null;
    }
  | { readonly kind: 'join'; readonly user: string; readonly group: string }
  | {
      readonly kind: 'set-once';
      readonly user: string;
      readonly property: string;
      readonly value: number;
      readonly uuid: string;
    }
  | {
      readonly kind: 'delete';
      readonly user: string;
      /** What was accepted until then is deleted, in milliseconds since 1970. Absent: until the deletion is accepted. */
      readonly before?: number;
    };

/** An action and its outcome. Each user and organization belongs to one client, which waits for every response. */
export interface Operation {
  readonly action: Action;
  /** When it was begun, in milliseconds since 1970. */
  readonly at: number;
  outcome: 'under way' | 'accepted' | 'unknown';
  /** When its last attempt got a response or was given up. */
  endedAt: number;
  /**
   * Accepted at the first attempt. Otherwise an attempt without a response may take effect at any later time, and more
   * than one may take effect.
   */
  clear: boolean;
}

/** What became of a load. */
export interface Tally {
  /** Begins the names of its users and organizations. */
  readonly name: string;
  /** In the order in which each client did them. */
  readonly operations: readonly Operation[];
  /** The uuids that events were given in a 202, by the events' keys. */
  readonly accepted: ReadonlyMap<string, string>;
  /** Responses that do not allow a retry. There must be none. */
  readonly refused: readonly string[];
}

/** A load that runs until it is stopped, or disposed of when a test fails. */
export interface Load extends AsyncDisposable {
  /** How many events have been acknowledged. */
  acceptedSoFar(): number;
  stop(): Promise<Tally>;
}

/** How often a client sends a request until it gets a 202. */
const ATTEMPTS = 5;

/** How long a client waits for a response, in milliseconds. */
const PATIENCE_MS = 15_000;

/**
 * A repeat of a stamped event is recognised for five minutes. So a client sends it again within this time of the first,
 * in milliseconds, which leaves time for all attempts.
 */
const STAMPED_AGAIN_MS = 180_000;

const PAUSE_MS_MAX = 1_000;

const USERS_PER_CLIENT = 6;

/** Users of each client to whom nothing is done but what {@link drawOnce} draws. */
const ONCE_USERS_PER_CLIENT = 2;

/** How far back the time of a deletion lies, in milliseconds, at most. */
const BEFORE_MS_MAX = 20_000;

const DAY_MS = 86_400_000;

let loads = 0;

/**
 * Submits what products submit: events of now and of the past months, the same ones again, also for another user than
 * the one who was deleted meanwhile, properties of users and organizations, users of organizations without events,
 * deletions, also of what came before some time, and what is set once. Some events have a timestamp of their own, others are stamped on receipt, with a uuid or with
 * an `Idempotency-Key`. Each request is repeated until it is accepted or its attempts are used up.
 */
export function startLoad({
  pipeline,
  urls,
  concurrency,
  seed = 1,
  pauseMs = 700,
  name = newName(),
  setsOnce = true,
}: LoadOptions): Load {
  const operations: Operation[] = [];
  const accepted = new Map<string, string>();
  const refused: string[] = [];
  let running = true;
  let turn = 0;

  /** Returns the text of a 202, and undefined when the request may be sent again. */
  async function attempt({ path, body, headers }: LoadRequest): Promise<string | undefined> {
    const targets = urls();
    turn += 1;
    try {
      const response = await fetch(`${targets[turn % targets.length]}${path}`, {
        method: body === undefined ? 'DELETE' : 'POST',
        body: body === undefined ? null : JSON.stringify(body),
        headers: {
          ...headers,
          authorization: `Bearer ${pipeline.key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      const text = await response.text();
      // PostHog's clients expect 200.
      if (response.status === 202 || (response.status === 200 && path === POSTHOG_PATH)) return text;
      const retryable = response.status === 503 && /^\d+$/.test(response.headers.get('retry-after') ?? '');
      if (!retryable) refused.push(`${response.status} ${text}`);
    } catch {
      // A cut connection or no response: whether the rows were kept is not known.
    }
    return undefined;
  }

  async function carryOut(operation: Operation): Promise<void> {
    const request = requestOf(operation.action, pipeline.key);
    for (let attempts = 0; attempts < ATTEMPTS; attempts += 1) {
      const response = await attempt(request);
      if (response !== undefined) {
        operation.outcome = 'accepted';
        operation.clear = attempts === 0;
        if (operation.action.kind === 'events') keepUuids(operation.action.events, response);
        return;
      }
      await delay(200);
    }
    operation.outcome = 'unknown';
  }

  function keepUuids(events: readonly SentEvent[], response: string): void {
    const given = (JSON.parse(response) as { events: { uuid: string }[] }).events;
    for (const [index, { key }] of events.entries()) accepted.set(key, given[index]?.uuid ?? '');
  }

  async function runClient(index: number): Promise<void> {
    const random = seededRandom(seed * 1_000 + index);
    const draw = createDraw(`${name}-${index}`, groupOf(name, index), random, setsOnce);
    let tookMs = 0;
    while (running) {
      await delay(Math.max(random() * pauseMs, Math.min(tookMs, PAUSE_MS_MAX)));
      const operation: Operation = { action: draw(), at: Date.now(), outcome: 'under way', endedAt: 0, clear: false };
      operations.push(operation);
      await carryOut(operation);
      operation.endedAt = Date.now();
      tookMs = operation.endedAt - operation.at;
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

function newName(): string {
  loads += 1;
  return `load-${process.pid}-${loads}`;
}

/** Returns the organization of a client of a load. */
export function groupOf(load: string, client: number): string {
  return `${load}-${client}-g`;
}

/** Draws what a client does next. */
function createDraw(client: string, group: string, random: () => number, setsOnce: boolean): () => Action {
  const below = (count: number) => Math.floor(random() * count);
  const sent: (Action & { kind: 'events' })[] = [];
  const deleted = new Set<string>();
  let counter = 0;
  let idempotencyKey = `${client}/0`;

  function drawTimedEvent(): SentEvent {
    // Some are late by up to two months, so that batches have parts in several.
    const timestamp = random() < 0.05 ? Date.now() - below(60) * DAY_MS : Date.now() - below(2_000);
    const uuid = uuidV7({ msecs: timestamp });
    return { key: `${uuid}@${timestamp}`, uuid, timestamp };
  }

  function drawStampedEvent(): SentEvent {
    const uuid = uuidV4({ random: Uint8Array.from({ length: 16 }, () => below(256)) });
    return { key: uuid, uuid };
  }

  function drawEvents(): Pick<Action & { kind: 'events' }, 'events' | 'idempotencyKey'> {
    const how = random();
    const count = 1 + below(9);
    if (how < 0.7) return { events: Array.from({ length: count }, drawTimedEvent) };
    if (how < 0.85) return { events: Array.from({ length: count }, drawStampedEvent) };
    // Now and then a key comes again with another body, which is another request.
    if (random() < 0.8) idempotencyKey = `${client}/${counter}`;
    const events = Array.from({ length: count }, (_, index) => ({ key: `${client}/${counter}/${index}` }));
    return { events, idempotencyKey };
  }

  /** Something that was sent before and can be sent again. */
  function drawAgain(): Action | undefined {
    const again = sent[below(sent.length)];
    if (!again) return undefined;
    const isStamped = again.events.some(({ timestamp }) => timestamp === undefined);
    return isStamped && Date.now() - again.firstAt > STAMPED_AGAIN_MS ? undefined : again;
  }

  /** Events that were sent for a user who was deleted meanwhile, for another user or for nobody. */
  function drawForAnother(): Action | undefined {
    const ofDeleted = sent.filter(({ user, idempotencyKey }) => deleted.has(user) && idempotencyKey === undefined);
    const again = ofDeleted[below(ofDeleted.length)];
    if (!again || again.events.some(({ timestamp }) => timestamp === undefined)) return undefined;
    return { ...again, user: random() < 0.5 ? '' : `${client}-other${below(2)}` };
  }

  /** What decides a property of a user: what is set, removed and set once, and which of it a deletion leaves. */
  function drawOnce(): Action {
    const user = `${client}-once${below(ONCE_USERS_PER_CLIENT)}`;
    const property = `o${below(2)}`;
    const how = random();
    if (how < 0.15) return { kind: 'delete', user, before: Date.now() - below(BEFORE_MS_MAX) };
    if (how < 0.5) return { kind: 'set', entity: 'user', id: user, property, value: how < 0.25 ? null : counter };
    const uuid = uuidV4({ random: Uint8Array.from({ length: 16 }, () => below(256)) });
    return { kind: 'set-once', user, property, value: counter, uuid };
  }

  return () => {
    const chance = random();
    const user = `${client}-u${below(USERS_PER_CLIENT)}`;
    const again = drawAgain();
    counter += 1;
    if (chance < 0.1 && again) return again;
    if (chance < 0.2) {
      const value = random() < 0.1 ? null : counter;
      const property = `p${below(3)}`;
      return random() < 0.5
        ? { kind: 'set', entity: 'user', id: user, property, value }
        : { kind: 'set', entity: 'organization', id: group, property, value };
    }
    if (chance < 0.203) {
      deleted.add(user);
      return { kind: 'delete', user };
    }
    if (chance < 0.22) return { kind: 'join', user, group: `${group}${below(3)}` };
    if (chance > 0.94 && setsOnce) return drawOnce();
    const forAnother = chance < 0.3 ? drawForAnother() : undefined;
    if (forAnother) return forAnother;
    const action = { kind: 'events' as const, user, group, ...drawEvents(), firstAt: Date.now() };
    sent.push(action);
    return action;
  };
}

interface LoadRequest {
  readonly path: string;
  /** The body of a POST; a DELETE has none. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The route of PostHog's clients. */
const POSTHOG_PATH = '/batch/';

function requestOf(action: Action, key: string): LoadRequest {
  switch (action.kind) {
    case 'events': {
      const { user, group, idempotencyKey } = action;
      const events = action.events.map(({ key, uuid, timestamp }) => ({
        event: 'load',
        ...(uuid !== undefined && { uuid }),
        ...(timestamp !== undefined && { timestamp: new Date(timestamp).toISOString() }),
        // It links its visitor to the user.
        ...(user !== '' && { anonymousId: `device of ${user}` }),
        properties: { key },
      }));
      return {
        path: '/v1/public/userGroups',
        body: { foreignUserGroupId: group, ...(user !== '' && { foreignUserId: user }), events },
        ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
      };
    }
    case 'set': {
      const properties = { [action.property]: action.value };
      return action.entity === 'user'
        ? { path: '/v1/public/users', body: { foreignId: action.id, properties } }
        : { path: '/v1/public/userGroups', body: { foreignUserGroupId: action.id, properties } };
    }
    case 'join':
      return {
        path: '/v1/public/userGroups',
        body: { foreignUserGroupId: action.group, foreignUserId: action.user },
      };
    case 'set-once': {
      const { user, property, value, uuid } = action;
      const event = { event: '$set', distinct_id: user, uuid, properties: { $set_once: { [property]: value } } };
      return { path: POSTHOG_PATH, body: { api_key: key, batch: [event] } };
    }
    case 'delete': {
      const before = action.before === undefined ? '' : `&before=${new Date(action.before).toISOString()}`;
      return { path: `/v1/users?foreignId=${encodeURIComponent(action.user)}${before}` };
    }
  }
}

import type { Action, SentEvent } from '../../kit/load.ts';
import type { Random } from '../world/random.ts';
import {
  callsRequest,
  deletionRequest,
  type EventsAction,
  eventsRequest,
  joinRequest,
  posthogRequest,
  type Submission,
  setOnceRequest,
  setRequest,
} from './submission.ts';

const USERS = 4;

/** Users of a client to whom nothing is done but what {@link Draw} draws of what is set once. */
const ONCE_USERS = 2;

/** How far back the time of a deletion lies at most, in milliseconds. */
const BEFORE_MS_MAX = 3_000;

const DAY_MS = 86_400_000;

export interface DrawOptions {
  /** The name of the client; its users and organizations are its own. */
  readonly client: string;
  readonly workspace: string;
  readonly random: Random;
  /** Returns milliseconds since 1970. */
  readonly now: () => number;
  /** How large an event is at most, in bytes. */
  readonly eventBytesMax: number;
  /** How large an event is that Kafka does not take, in bytes; undefined when none is sent. */
  readonly refusedBytes: number | undefined;
}

/**
 * Draws what a client submits, to the routes of Sluice, of Segment's and of PostHog's clients: new events with timestamps of
 * their own or stamped on receipt, the same ones again, also for another user than the one who was deleted meanwhile, calls of
 * which some cannot be taken, properties, also such that are set once, deletions, also of what came before some time.
 */
export class Draw {
  readonly #options: DrawOptions;
  readonly #sent: Submission[] = [];
  readonly #deleted = new Set<string>();
  #count = 0;

  constructor(options: DrawOptions) {
    this.#options = options;
  }

  next(): Submission {
    const { random, client } = this.#options;
    this.#count += 1;
    const user = `${client}-u${random.below(USERS)}`;
    // As groups of PostHog's clients are called.
    const group = `company:${client}-g${random.below(2)}`;
    const choice = random.next();
    if (choice < 0.12 && this.#sent.length > 0) return random.pick(this.#sent);
    if (choice < 0.2) {
      const again = this.#forAnother();
      if (again) return again;
    }
    if (choice < 0.28) return this.#delete(user);
    if (choice < 0.36) return this.#set(random.isTrue(0.5) ? 'user' : 'organization', user, group);
    if (choice < 0.38) return this.#create([{ kind: 'join', user, group }], joinRequest({ kind: 'join', user, group }));
    if (choice < 0.46) return this.#once(`${client}-once${random.below(ONCE_USERS)}`);
    const sent = choice < 0.65 ? this.#calls(user, group) : this.#events(user, group);
    this.#sent.push(sent);
    return sent;
  }

  /** Draws a deletion, and a property of each of many users. */
  toAllPartitions(): Submission[] {
    const names = Array.from({ length: 4 * USERS }, (_, at) => `${this.#options.client}-last${at}`);
    this.#count += 1;
    return [this.#delete(names[0] as string), ...names.map((name) => this.#set('user', name, ''))];
  }

  #events(user: string, group: string): Submission {
    const { random, refusedBytes } = this.#options;
    const isTooLarge = refusedBytes !== undefined && random.isTrue(0.05);
    const how = random.next();
    const count = 1 + random.below(5);
    const action: EventsAction = {
      ...{ kind: 'events', user: random.isTrue(0.1) ? '' : user, group, firstAt: this.#options.now() },
      fill: isTooLarge ? refusedBytes : this.#fill(),
      events: Array.from({ length: count }, (_, index) => (how < 0.8 ? this.#event(how < 0.5) : this.#unnamed(index))),
      ...(how >= 0.8 && { idempotencyKey: `${this.#options.client}/${this.#count}` }),
    };
    const property = random.isTrue(0.2) ? this.#property('organization', group) : undefined;
    return this.#create(property ? [action, property] : [action], eventsRequest(action, property), { isTooLarge });
  }

  #calls(ofUser: string, group: string): Submission {
    const { random, client, now } = this.#options;
    const user = random.isTrue(0.1) ? '' : ofUser;
    const isTimed = random.isTrue(0.8);
    const events = Array.from({ length: random.below(5) }, () => this.#event(isTimed));
    const action: EventsAction = { kind: 'events', user, group, firstAt: now(), fill: this.#fill(), events };
    const bad = Array.from(
      { length: events.length === 0 ? 1 : random.below(3) },
      (_, index) => `${client}-bad-${this.#count}-${index}`,
    );
    const rejected = new Map(bad.map((name, index) => [events.length + index, name]));
    const request = random.isTrue(0.5)
      ? callsRequest(action, bad)
      : posthogRequest(action, bad, this.#options.workspace);
    return this.#create([action], request, { rejected });
  }

  /** What decides a property of a user: what is set, removed and set once, and which of it a deletion leaves. */
  #once(user: string): Submission {
    const { random, now, workspace } = this.#options;
    const how = random.next();
    const property = `o${random.below(2)}`;
    if (how < 0.2) {
      const before = now() - random.below(BEFORE_MS_MAX);
      return this.#create([{ kind: 'delete', user, before }], deletionRequest(user, new Date(before).toISOString()));
    }
    if (how < 0.5) {
      const value = how < 0.3 ? null : this.#count;
      const action = { kind: 'set', entity: 'user', id: user, property, value } as const;
      return this.#create([action], setRequest(action));
    }
    const { uuid = '' } = this.#event(false);
    const action = { kind: 'set-once', user, property, value: this.#count, uuid } as const;
    return this.#create([action], setOnceRequest(action, workspace));
  }

  /** Events of a user who was deleted, for another user or for nobody. */
  #forAnother(): Submission | undefined {
    const { random, client } = this.#options;
    const again = this.#sent.flatMap(({ actions: [action], rejected, isTooLarge }) => {
      const isNamed = action?.kind === 'events' && action.events.every(({ timestamp }) => timestamp !== undefined);
      return isNamed && rejected.size === 0 && !isTooLarge && this.#deleted.has(action.user) ? [action] : [];
    });
    if (again.length === 0) return undefined;
    const user = random.isTrue(0.5) ? '' : `${client}-other${random.below(2)}`;
    const action = { ...(random.pick(again) as EventsAction), user };
    return this.#create([action], eventsRequest(action));
  }

  #delete(user: string): Submission {
    this.#deleted.add(user);
    return this.#create([{ kind: 'delete', user }], deletionRequest(user));
  }

  #set(entity: 'user' | 'organization', user: string, group: string): Submission {
    const action = this.#property(entity, entity === 'user' ? user : group);
    return this.#create([action], setRequest(action));
  }

  #property(entity: 'user' | 'organization', id: string): Action & { readonly kind: 'set' } {
    const { random } = this.#options;
    const value = random.isTrue(0.1) ? null : this.#count;
    return { kind: 'set', entity, id, property: `p${random.below(2)}`, value };
  }

  #event(isTimed: boolean): SentEvent {
    const { random, now } = this.#options;
    const digits = Array.from({ length: 4 }, () => random.below(0x1_0000_0000).toString(16).padStart(8, '0')).join('');
    const uuid = `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20)}`;
    if (!isTimed) return { key: uuid, uuid };
    const timestamp = now() - (random.isTrue(0.05) ? random.below(60) * DAY_MS : random.below(2_000));
    return { key: `${uuid}@${timestamp}`, uuid, timestamp };
  }

  #unnamed(index: number): SentEvent {
    return { key: `${this.#options.client}/${this.#count}/${index}` };
  }

  #fill(): number {
    const { random, eventBytesMax } = this.#options;
    return Math.floor(eventBytesMax * random.next() ** 3);
  }

  #create(
    actions: readonly Action[],
    request: Submission['request'],
    { isTooLarge = false, rejected = new Map() }: Partial<Pick<Submission, 'isTooLarge' | 'rejected'>> = {},
  ): Submission {
    const { client, workspace } = this.#options;
    const headers = { ...request.headers, authorization: `Bearer ${workspace}` };
    const id = `${client}/${this.#count}`;
    return { id, workspace, actions, rejected, isTooLarge, request: { ...request, headers } };
  }
}

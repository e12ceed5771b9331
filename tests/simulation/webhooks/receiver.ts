import type { Attempt, HttpSender, Message } from '@sluice/query-api/webhooks/http-sender';
import { WATCHED } from './numbers.ts';
import type { StoredEvent } from './stored-events.ts';
import type { WebhooksWorld } from './world.ts';

/** How long an attempt may take, in milliseconds. */
const ATTEMPT_MS_MAX = 5_000;

/** Who makes attempts. */
export interface Sender {
  /** Whose leases these are. */
  readonly holder: string;
}

/** A message of an alert. */
interface AlertMessage {
  readonly state: 'firing' | 'resolved';
  readonly value: number;
  readonly endDate: string;
}

/** What has become of one webhook's events or messages, as its receivers know it. */
interface Received {
  /** How often each event, or message of an alert, was taken, by its id, in the order in which they came first. */
  readonly taken: Map<string, number>;
  /** The texts of the messages of an alert, by their ids, in the order in which they came first. */
  readonly texts: Map<string, string>;
  /** The highest epoch in which an attempt was begun. */
  epoch: number;
  lastAttemptMs: number;
}

/** The receivers of all webhooks, and what is right about their attempts at each moment. */
export class Receivers {
  readonly #world: WebhooksWorld;
  readonly #received = new Map<string, Received>();
  /** When an attempt of a process failed last, by webhook and holder. */
  readonly failedAtMs = new Map<string, number>();
  /** How likely a receiver responds with an error. */
  failures = 0;
  /** How long a receiver takes at most, in milliseconds. */
  slownessMs = 20;

  constructor(world: WebhooksWorld) {
    this.#world = world;
  }

  /** Returns what sends for a process, in place of its HTTP client. */
  senderOf({ holder }: Sender): Pick<HttpSender, 'send'> {
    return {
      send: async (url, message, secrets, signal) => {
        const { network } = this.#world;
        const webhook = this.#begin(holder, url, message, secrets);
        const begunMs = performance.now();
        const serve = () => this.#take(webhook, message, secrets);
        const aborted = new Promise<never>((_, reject) => {
          const abort = () => reject(new Error('aborted'));
          if (signal.aborted) abort();
          else signal.addEventListener('abort', abort, { once: true });
        });
        const sending = network.request('receiver', 'deliver', serve, ATTEMPT_MS_MAX);
        const outcome = await Promise.race([sending, aborted]).catch((error: Error) => error);
        const durationMs = performance.now() - begunMs;
        if (outcome instanceof Error)
          return this.#failed(webhook, holder, { status: 0, durationMs, error: outcome.message });
        if (outcome < 300) return { isDelivered: true, status: outcome, durationMs, error: '' };
        return this.#failed(webhook, holder, { status: outcome, durationMs, error: `status ${outcome}` });
      },
    };
  }

  #failed(webhook: string, holder: string, attempt: Omit<Attempt, 'isDelivered'>): Attempt {
    this.failedAtMs.set(`${webhook} ${holder}`, this.#world.time.nowMs);
    this.#world.clients.noteFailure(webhook);
    return { ...attempt, isDelivered: false };
  }

  /** The address of each webhook has its name. */
  #begin(holder: string, url: string, message: Message, secrets: readonly string[]): string {
    const webhook = new URL(url).pathname.split('/')[1] ?? '';
    const { time, stored, clients } = this.#world;
    const received = this.#of(webhook);
    const epoch = this.#world.epochOf(clients.idOf(webhook) ?? '', holder);
    const deleted = this.#eventsOf(message).find((event) => event && stored.isDeleted(event));
    if (deleted) this.#world.report(`${webhook} is sent ${deleted.uuid}, whose user is deleted`);
    if (epoch < received.epoch) {
      this.#world.report(`${webhook} is sent in epoch ${epoch}, after an attempt in epoch ${received.epoch}`);
    }
    received.epoch = Math.max(epoch, received.epoch);
    received.lastAttemptMs = time.nowMs;
    clients.checkAttempt(webhook, url, secrets);
    return webhook;
  }

  #eventsOf({ body }: Message): (StoredEvent | undefined)[] {
    const { type, data } = JSON.parse(body) as { type: string; data: { uuid: string } | { uuid: string }[] };
    if (type === 'alert') return [];
    return [data].flat().map(({ uuid }) => this.#world.stored.all[Number(uuid.slice(-12))]);
  }

  async #take(webhook: string, message: Message, secrets: readonly string[]): Promise<number> {
    const { time, random, clients } = this.#world;
    await time.wait(random.between(0.5, this.slownessMs));
    if (random.isTrue(this.failures)) return random.isTrue(0.5) ? 410 : 500;
    if (!secrets.some((secret) => clients.knowsSecret(webhook, secret)))
      this.#world.report(`${webhook} is signed with a secret that nobody was given`);
    const { taken } = this.#of(webhook);
    if (clients.isAlert(webhook)) this.#takeAlert(webhook, message);
    for (const event of this.#eventsOf(message)) {
      if (!event || !clients.mayWant(webhook, event)) {
        this.#world.report(`${webhook} gets ${event?.uuid}, which it does not want`);
        continue;
      }
      if (!taken.has(event.uuid)) this.#checkOrder(webhook, event.uuid);
      taken.set(event.uuid, (taken.get(event.uuid) ?? 0) + 1);
    }
    return 200;
  }

  /** Each change is one message, of what the number was, and a copy of it is the same. */
  #takeAlert(webhook: string, { id, body }: Message): void {
    const { taken, texts } = this.#of(webhook);
    const { state, value, endDate } = messageIn(body);
    const last = [...texts.values()].at(-1);
    const before = last === undefined ? 'resolved' : messageIn(last).state;
    if (!texts.has(id) && state === before) this.#world.report(`${webhook} says ${state} again, with another id`);
    if ((texts.get(id) ?? body) !== body) this.#world.report(`${webhook} says something else with the id ${id}`);
    const isHigh = value > WATCHED.condition.threshold;
    if (value !== this.#world.numbers.valueAt(Date.parse(endDate)) || isHigh !== (state === 'firing'))
      this.#world.report(`${webhook} says ${state} of ${value} up to ${endDate}`);
    texts.set(id, body);
    taken.set(id, (taken.get(id) ?? 0) + 1);
  }

  /** An event comes after all before it, or these were deleted. */
  #checkOrder(webhook: string, uuid: string): void {
    const { stored, clients } = this.#world;
    const { taken } = this.#of(webhook);
    const before = stored.all.slice(0, Number(uuid.slice(-12)));
    const missing = before.find(
      (event) => clients.wants(webhook, event) && !taken.has(event.uuid) && !stored.isDeleted(event),
    );
    if (missing) this.#world.report(`${webhook} gets ${uuid} before ${missing.uuid}`);
  }

  /** Returns what a webhook has not got that is still there; of an alert, once its number is high for good. */
  missing(webhook: string): string | undefined {
    const { stored, clients } = this.#world;
    const { taken } = this.#of(webhook);
    const one = stored.all.find(
      (event) => clients.wants(webhook, event) && !taken.has(event.uuid) && !stored.isDeleted(event),
    );
    if (one) return `${webhook} has not got ${one.uuid}`;
    const last = [...this.#of(webhook).texts.values()].at(-1);
    const fires = last !== undefined && messageIn(last).state === 'firing';
    return clients.isAlert(webhook) && !fires ? `${webhook} has not got that it fires` : undefined;
  }

  /** Returns what a webhook got more than once. */
  repeated(webhook: string): readonly string[] {
    return [...this.#of(webhook).taken].flatMap(([uuid, times]) => (times > 1 ? [uuid] : []));
  }

  lastAttemptMs(webhook: string): number {
    return this.#of(webhook).lastAttemptMs;
  }

  #of(webhook: string): Received {
    const known = this.#received.get(webhook) ?? {
      ...{ taken: new Map(), texts: new Map() },
      epoch: 0,
      lastAttemptMs: Number.NEGATIVE_INFINITY,
    };
    this.#received.set(webhook, known);
    return known;
  }
}

function messageIn(body: string): AlertMessage {
  return (JSON.parse(body) as { readonly data: AlertMessage }).data;
}

import { Readable } from 'node:stream';
import { NOTE, type StreamListener } from '@sluice/query-api/stream/stream-listener';
import { encodePosition, endOfBlock, isPlaceAtLeast, type StoredAt } from '@sluice/query-api/stream/stream-position';
import type { SendableEvent } from '@sluice/query-api/webhooks/shown-events';
import type { StreamSource } from '@sluice/query-api/webhooks/webhook-stream';
import { Problem } from '@sluice/shared/http/problem';
import type { Network } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';

/** How often a stream reads, in milliseconds. */
const READ_MS = 250;

/** How long a look-up of deletions may take, in milliseconds. */
const LOOK_UP_MS_MAX = 5_000;

/** An event of a workspace, in the order of storage. */
export interface StoredEvent {
  readonly workspace: string;
  readonly uuid: string;
  /** What a filter asks for. */
  readonly event: string;
  readonly user: string;
  readonly receivedUs: number;
  readonly place: StoredAt;
  /** In virtual time. */
  readonly storedMs: number;
}

/** The events that are stored, and the streams that read them in place of the hubs of query-api. */
export class StoredEvents {
  readonly #time: VirtualTime;
  readonly #network: Network;
  readonly #random: Random;
  readonly all: StoredEvent[] = [];
  /** Up to when the events of a user are deleted, in microseconds since 1970. */
  readonly deletedUs = new Map<string, number>();
  /** How likely a stream cannot be opened, or ends before it has sent all. */
  failures = 0;
  #block = 0;

  constructor(time: VirtualTime, network: Network, random: Random) {
    this.#time = time;
    this.#network = network;
    this.#random = random;
  }

  /** Stores some events with one insert. */
  store(events: readonly Pick<StoredEvent, 'workspace' | 'event' | 'user'>[]): void {
    this.#block += 1;
    const timestampMs = this.#time.dateMs;
    const placed = events.map((event, index) => {
      const uuid = `00000000-0000-4000-8000-${String(this.all.length + index).padStart(12, '0')}`;
      const receivedUs = timestampMs * 1_000 + index;
      return {
        ...event,
        uuid,
        receivedUs,
        place: { block: this.#block, timestampMs, uuid },
        storedMs: this.#time.nowMs,
      };
    });
    this.all.push(...placed);
  }

  deleteUser(user: string): void {
    this.deletedUs.set(user, this.#time.dateMs * 1_000 + 999);
  }

  isDeleted({ user, receivedUs }: Pick<StoredEvent, 'user' | 'receivedUs'>): boolean {
    return receivedUs <= (this.deletedUs.get(user) ?? 0);
  }

  /** Opens streams, with the interface of the hubs. A filter names the events that it wants. */
  readonly hubs: StreamSource = {
    inQuery: async (_, query) => query,
    open: async ({ key }, after) => {
      await this.#pause(this.#random.between(1, 50));
      if (this.#random.isTrue(this.failures))
        throw new Problem('store_unavailable', 'The event store cannot be reached.');
      const [workspace] = JSON.parse(key) as [string];
      const names = ['e0', 'e1'].filter((name) => key.includes(name));
      const isWanted = (event: StoredEvent) =>
        event.workspace === workspace && (names.length === 0 || names.includes(event.event));
      const from = after ? after.position.get(0) : endOfBlock(this.#block);
      const body = Readable.from(this.#messages(isWanted, from), { objectMode: false });
      return { body } as unknown as StreamListener;
    },
  };

  async *#messages(isWanted: (event: StoredEvent) => boolean, from: StoredAt | undefined): AsyncGenerator<Buffer> {
    let place = from;
    yield this.#bytes(place ?? endOfBlock(0));
    for (;;) {
      await this.#pause(this.#random.between(READ_MS / 2, READ_MS));
      if (this.#random.isTrue(this.failures)) return;
      const next = this.all.filter((event) => !(place && isPlaceAtLeast(place, event.place)));
      const shown = next.filter((event) => isWanted(event) && !this.isDeleted(event));
      for (const event of shown) yield this.#bytes(event.place, event);
      const last = next.at(-1);
      if (!last) continue;
      place = endOfBlock(last.place.block);
      yield this.#bytes(place);
    }
  }

  /** Takes some time of the process whose code is running: frozen, it goes on later; killed, never. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#time.after(ms, resolve, this.#time.process));
  }

  #bytes(place: StoredAt, event?: StoredEvent): Buffer {
    const id = `id: ${encodePosition(new Map([[0, place]]), this.#time.dateMs)}\n`;
    if (!event) return Buffer.from(`${id}\n`);
    const { uuid, user, receivedUs } = event;
    const timestamp = new Date(event.place.timestampMs).toISOString();
    const note = { shownAtMs: performance.now(), receivedAtUs: receivedUs };
    const data = JSON.stringify({ uuid, timestamp, userId: user, anonymousId: null });
    return Buffer.from(`${id}${NOTE.slice(0, -1)}${JSON.stringify(note)}\ndata: ${data}\n\n`);
  }

  /** Decides again which events are shown, in place of `ShownEvents`. */
  readonly shown = {
    among: async <Event extends SendableEvent>(
      _workspace: string,
      events: readonly Event[],
    ): Promise<readonly Event[]> => {
      await this.#network.request('ClickHouse', 'look up', async () => undefined, LOOK_UP_MS_MAX);
      if (this.#random.isTrue(this.failures))
        throw new Problem('store_unavailable', 'The event store cannot be reached.');
      return events.filter(
        ({ person, receivedAtUs }) => !this.isDeleted({ user: person ?? '', receivedUs: receivedAtUs }),
      );
    },
  };
}

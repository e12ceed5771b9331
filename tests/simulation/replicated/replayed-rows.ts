import type { EventRow } from '@sluice/shared/rows';
import type { Random } from '../world/random.ts';
import { Load, uuidOf, WORKSPACE } from '../writer/load.ts';
import { RowSender } from '../writer/row-sender.ts';
import type { World } from '../writer/world.ts';

/** Above the numbers of all events of a load. */
const FIRST_NUMBER = 0x4000_0000;

const USERS = 6;

/**
 * A load with events that were accepted long before Kafka has them, such as dead letters that are replayed. Their users may have been deleted since
 * then, and the deletions forgotten.
 */
export class ReplayingLoad {
  readonly #world: World;
  readonly #load: Load;
  readonly #random: Random;
  readonly #untilMs: number;
  #count = 0;

  /** @param untilMs when it ends; what is to be replayed later is not */
  constructor(world: World, random: Random, untilMs: number) {
    this.#world = world;
    this.#load = new Load(world, random);
    this.#random = random;
    this.#untilMs = untilMs;
  }

  act(): void {
    this.#load.act();
    this.#replayLater();
  }

  sendToAll(): void {
    this.#load.sendToAll();
  }

  #replayLater(): void {
    const { time } = this.#world;
    this.#count += 1;
    const event: EventRow = {
      ...{
        workspace_id: WORKSPACE,
        uuid: uuidOf(FIRST_NUMBER + this.#count),
        event: 'replayed',
        timestamp: time.dateMs,
      },
      user_id: `u${this.#random.below(USERS)}`,
      // Behind what the load has sent in this millisecond.
      received_at: time.dateMs * 1_000 + 500 + (this.#count % 500),
    };
    const afterMs = this.#random.between(4_000, 14_000);
    if (time.nowMs + afterMs > this.#untilMs) return;
    time.after(afterMs, () => {
      const sender = new RowSender(this.#world);
      sender.sendEvents(sender.partitionOf(event.uuid), [event]);
    });
  }
}

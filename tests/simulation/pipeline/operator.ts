import { createKafka } from '@sluice/shared/kafka/client';
import { DeadLetters, NotReplayable, REPLAY_STATEMENTS } from '@sluice/storage/dead-letters';
import { deadLetterId } from '@sluice/storage/protocol/dead-letter';
import { parseRejectedCall, type RejectedCall } from '@sluice/submissions/calls/rejected-call';
import type { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { subjectOf } from '../clickhouse/statements.ts';
import { isHidden, userKey } from '../clickhouse/tables.ts';
import { identityOfEvent } from '../ingest/row-identity.ts';
import type { Random } from '../world/random.ts';
import { SimulatedProcess } from '../world/simulated-process.ts';
import { createTraceLogger } from '../world/trace-logger.ts';
import type { PipelineWorld } from './world.ts';

/** How long ClickHouse may take, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

const PAUSE_MS_MAX = 150;

/** How long after its begin a replay is killed at most, in milliseconds. */
const KILLED_MS_MAX = 400;

/** What is known of a rejected call that waits, or did. */
interface Waiting {
  /** As it came first. */
  readonly call: RejectedCall;
  /** When it came last, in microseconds since 1970. */
  receivedAt: number;
  /** When Kafka got it last, in milliseconds of virtual time: a client may send it again. */
  sentAtMs: number;
  /** When a replay has read it last. */
  readAtMs: number;
  /** Whether somebody was told that it is replayed with another call. */
  isAccepted: boolean;
}

/** Changes rejected calls and sends them again, as they are listed, some of them twice at once, and some replays are killed. */
export class Operator {
  readonly #world: PipelineWorld;
  readonly #random: Random;
  readonly #waiting = new Map<string, Waiting>();
  #replays = 0;
  #running = 0;

  constructor(world: PipelineWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** Kafka has got the row of a call that was rejected. */
  rejected(line: string): void {
    const row = Buffer.from(line);
    const call = parseRejectedCall(row);
    if (!call) throw new Error(`this is no rejected call: ${line}`);
    const id = deadLetterId({ kind: 'rejected', row });
    const known = this.#waiting.get(id);
    const sentAtMs = this.#world.time.nowMs;
    const receivedAt = Math.max(known?.receivedAt ?? 0, call.received_at);
    if (known) Object.assign(known, { sentAtMs, receivedAt });
    else this.#waiting.set(id, { call, receivedAt, sentAtMs, readAtMs: 0, isAccepted: false });
  }

  start(untilMs: number): void {
    const { time } = this.#world;
    if (time.nowMs >= untilMs) return;
    const listed = [...this.#clickhouse.tables.deadLetters.keys()];
    if (listed.length > 0) {
      const id = this.#random.pick(listed);
      for (let times = this.#random.isTrue(0.3) ? 2 : 1; times > 0; times -= 1)
        this.#begin(id, { isChanged: this.#random.isTrue(0.9), isKilled: this.#random.isTrue(0.3) });
    }
    time.after(this.#random.between(0, PAUSE_MS_MAX), () => this.start(untilMs));
  }

  /** Replays whatever is listed as not replayed. Nothing may be wrong any more. A call of a deleted user may be erased meanwhile. */
  async replayAll(withinMs: number): Promise<void> {
    const { time } = this.#world;
    const { tables } = this.#clickhouse;
    const isWrong = () => this.#world.violation !== undefined;
    for (const [id, deadLetter] of tables.deadLetters) {
      if (deadLetter.isReplayed) continue;
      this.#begin(id, { isChanged: true, isKilled: false });
      await time.runUntil(time.nowMs + withinMs, () => isWrong() || this.#running === 0);
      const { workspace_id, user_id, version } = subjectOf(deadLetter);
      const isErased =
        !tables.deadLetters.has(id) && version <= (tables.deletions.get(userKey(workspace_id, user_id)) ?? -1);
      if (!this.#waiting.get(id)?.isAccepted && !isErased)
        this.#world.report(`${id} cannot be replayed after the last fault`);
      if (isWrong()) return;
    }
  }

  get #clickhouse(): SimulatedClickHouse {
    const [server] = this.#world.servers;
    if (!server) throw new Error('there is no server');
    return server.clickhouse;
  }

  #begin(id: string, { isChanged, isKilled }: { readonly isChanged: boolean; readonly isKilled: boolean }): void {
    const { time } = this.#world;
    this.#replays += 1;
    const process = new SimulatedProcess(`operator ${this.#replays}`);
    this.#running += 1;
    const end = () => {
      this.#running -= 1;
    };
    time.runAs(process, () => void this.#replay(id, process, isChanged).finally(isKilled ? undefined : end));
    if (!isKilled) return;
    time.after(this.#random.between(0, KILLED_MS_MAX), () => {
      this.#world.note(`${process.name} is killed`);
      process.kill();
      end();
    });
  }

  async #replay(id: string, { name }: SimulatedProcess, isChanged: boolean): Promise<void> {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    if (isChanged) {
      const { workspace_id, user_id: user = '' } = waiting.call;
      const identity = identityOfEvent(workspace_id, {
        event: 'load',
        key: keyOf(id),
        user,
        group: '',
        time: undefined,
      });
      this.#world.side.oracle.beginReplay(waiting.call, identity);
    }
    try {
      const isFound = await this.#deadLetters(name, waiting).replay(
        id,
        isChanged ? textOfChanged(id, waiting.call) : undefined,
      );
      this.#world.note(`${name}: ${id} is ${isFound ? 'replayed' : 'unknown'}`);
      if (isFound && !isChanged) this.#world.report(`${id} was rejected and is taken as it was`);
      if (isFound) waiting.isAccepted = true;
    } catch (error) {
      this.#world.note(`${name}: ${id}: ${(error as Error).message}`);
      if (error instanceof NotReplayable && isChanged) this.#world.report(`${id} is not taken: ${error.message}`);
    }
  }

  #deadLetters(name: string, waiting: Waiting): DeadLetters {
    const { network, side, time } = this.#world;
    const client = createSimulatedClient(this.#clickhouse, network, REQUEST_TIMEOUT_MS);
    const { query } = client;
    client.query = async (call) => {
      const result = await query(call);
      if (call.query === REPLAY_STATEMENTS.read.sql) waiting.readAtMs = time.nowMs;
      return result;
    };
    const logger = createTraceLogger((line) => this.#world.note(`${name} ${line}`));
    return new DeadLetters(side.config, client, createKafka(side.config, name, logger));
  }

  /** Compares what was told with what is stored. Returns what is wrong. */
  wrongReplays(): string[] {
    const { tables } = this.#clickhouse;
    return [...this.#waiting].flatMap(([id, { call, receivedAt, sentAtMs, readAtMs, isAccepted }]) => {
      const { workspace_id, user_id = '' } = call;
      const visible = tables.events
        .filter(({ properties }) => properties?.['key'] === keyOf(id))
        .filter((event) => !isHidden(tables, event));
      const isReplayed = tables.deadLetters.get(id)?.isReplayed ?? false;
      const deletedAt = tables.deletions.get(userKey(workspace_id, user_id)) ?? 0;
      const isMissing = visible.length === 0 && deletedAt < call.received_at;
      const isOther = visible.some((event) => event.user_id !== user_id || event.workspace_id !== workspace_id);
      const faults: readonly (readonly [isSo: boolean, text: string])[] = [
        [isMissing && isAccepted, 'was replayed, and the event in its place is lost'],
        [isMissing && isReplayed, 'is listed as replayed, and nothing was sent in its place'],
        [isReplayed && readAtMs < sentAtMs, 'was rejected again, and is listed as replayed'],
        [visible.length > 1, 'is replaced by more than one event'],
        [visible.length > 0 && receivedAt <= deletedAt, 'is replaced by an event of a user who was deleted since'],
        [isOther, 'is replaced by an event that nobody sent'],
      ];
      return faults.flatMap(([isSo, text]) => (isSo ? [`the rejected call ${id} ${text}`] : []));
    });
  }
}

/** No key of a client's event is like it. */
function keyOf(id: string): string {
  return `replay/${id}`;
}

/** Returns the text of an event in place of a rejected call: always the same, with a uuid of its own or without one. */
function textOfChanged(id: string, { user_id, format }: RejectedCall): string {
  const uuid = `${id.slice(0, 8)}-${id.slice(8, 12)}-4${id.slice(13, 16)}-8${id.slice(17, 20)}-${id.slice(20)}`;
  const messageId = Number.parseInt(id.slice(0, 2), 16) % 2 === 0 ? uuid : undefined;
  const [event, key] = ['load', keyOf(id)];
  if (format !== 'posthog') {
    const person = user_id === undefined ? { anonymousId: 'a' } : { userId: user_id };
    return JSON.stringify({ type: 'track', event, messageId, ...person, properties: { key } });
  }
  const isNobody = user_id === undefined;
  const properties = { key, ...(isNobody && { $process_person_profile: false }) };
  return JSON.stringify({ event, uuid: messageId, distinct_id: user_id ?? 'nobody', properties });
}

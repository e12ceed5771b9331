import { sleep } from '@sluice/shared/base/retry';
import { until } from '@sluice/shared/testing/until';
import { timeOf, uuidOf } from '../data/event.ts';
import { FORMS } from '../data/forms.ts';
import { cpuTimeUs, difference } from '../measure/cpu-time.ts';
import type { Loader, LoadResult, LoadShape } from '../processes/load.ts';
import { VoidRun } from '../report/benchmark.ts';
import type { Peer } from './peer.ts';

/** The processes through which events go, by what they do. */
export const ROLES = ['ingest', 'Kafka', 'sink', 'ClickHouse'] as const;

/** The longest time until all events are stored, in milliseconds, where nothing fails. */
const STORED_MS = 240_000;

/** How long a probe pauses at most after it was seen, and between two looks, in milliseconds. */
const PROBE_PAUSE_MS = 400;
const POLL_MS = 10;

/**
 * How long nothing more must have been stored, in milliseconds: longer than a consumer that was killed stays in its group
 * (10 seconds), and while events are missing so long that its partitions have been read again.
 */
const QUIET_MS = 12_000;
const QUIET_WHILE_MISSING_MS = 60_000;

/** What a load at full speed costs. */
export interface PeerCost extends Pick<LoadResult, 'latencyMs'> {
  /** Until all were stored. */
  readonly eventsPerSecond: number;
  /** CPU time, in microseconds an event. A peer without a process for the sink has none. */
  readonly cpuUs: Readonly<Partial<Record<(typeof ROLES)[number], number>>>;
}

/** What became of acknowledged events. */
export interface Delivery {
  readonly acknowledged: number;
  readonly lost: number;
  /** Events that are stored more than once. */
  readonly doubled: number;
}

/** Sends events to a peer, and finds them again by their uuids. */
export class MeasuredPeer {
  readonly name: string;
  readonly peer: Peer;
  readonly #loader: Loader;
  #nextEvent = 0;

  constructor(name: string, peer: Peer, loader: Loader) {
    this.name = name;
    this.peer = peer;
    this.#loader = loader;
  }

  /** Sends a load that repeats what is not acknowledged. @throws {VoidRun} when a request was never acknowledged */
  async load(shape: LoadShape): Promise<LoadResult> {
    const { url, key, form } = this.peer;
    const result = await this.#loader.run({ ...shape, url, key, form, repeats: true, firstEvent: this.#nextEvent });
    if (result.fault !== undefined) throw new VoidRun(`${this.name} did not acknowledge a request: ${result.fault}`);
    this.#nextEvent += result.events;
    return result;
  }

  /** Measures what events cost until all are stored and merged. */
  async measureCost(shape: LoadShape): Promise<PeerCost> {
    const { engines } = this.peer;
    const rowsBefore = await this.rows();
    const before = await this.#cpuTimes();
    const startedAt = performance.now();
    const { events, latencyMs } = await this.load(shape);
    const stored = async () => (await this.rows()) >= rowsBefore + events;
    await until(`${events} events to be stored by ${this.name}`, stored, STORED_MS);
    const seconds = (performance.now() - startedAt) / 1_000;
    await engines.mergesSettled();
    const used = difference(before, await this.#cpuTimes());
    const cpuUs = Object.fromEntries(Object.entries(used).map(([role, us]) => [role, us / events]));
    return { eventsPerSecond: events / seconds, latencyMs, cpuUs };
  }

  /**
   * Sends a load, and single events beside it.
   *
   * @returns how long after its acknowledgement each of these was seen in the table, in milliseconds
   */
  async measureVisible(shape: LoadShape): Promise<Pick<LoadResult, 'latencyMs'> & { readonly visibleMs: number[] }> {
    // The probes take their numbers before the load takes its own.
    const first = this.#nextEvent;
    this.#nextEvent += Math.ceil(shape.durationMs / POLL_MS);
    const [{ latencyMs }, visibleMs] = await Promise.all([this.load(shape), this.#probe(first, shape.durationMs)]);
    return { latencyMs, visibleMs };
  }

  /**
   * Sends a load while `work` breaks things, and counts the events of it by their uuids. Merges of the table are off from
   * then on: they would remove some copies of events, sooner or later.
   */
  async countDelivery(shape: LoadShape, work: () => Promise<void>): Promise<Delivery> {
    const { engines, table } = this.peer;
    const settings = ['max_bytes_to_merge_at_max_space_in_pool = 1', 'max_bytes_to_merge_at_min_space_in_pool = 1'];
    await engines.query(`ALTER TABLE ${table} MODIFY SETTING ${settings.join(', ')}`);
    const first = this.#nextEvent;
    await Promise.all([this.load(shape), work().finally(() => this.#loader.stop())]);
    const acknowledged = this.#nextEvent - first;
    const { distinct, doubled } = await this.#settled(first, acknowledged);
    return { acknowledged, lost: acknowledged - distinct, doubled };
  }

  /** How many rows are stored. */
  async rows(): Promise<number> {
    return Number(await this.peer.engines.query(`SELECT count() FROM ${this.peer.table}`));
  }

  /** Sends single events, one after the other, and returns how long each took from its response until it was seen. */
  async #probe(first: number, durationMs: number): Promise<number[]> {
    const visibleMs: number[] = [];
    let number = first;
    for (const endAt = performance.now() + durationMs; performance.now() < endAt; number += 1) {
      await sleep(Math.random() * PROBE_PAUSE_MS);
      visibleMs.push(await this.#probeOnce(number));
    }
    return visibleMs;
  }

  async #probeOnce(number: number): Promise<number> {
    const { url, key, form, engines, table, time, uuid } = this.peer;
    const { path, status, bodyOf } = FORMS[form];
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: bodyOf(number, number, key) });
    await response.arrayBuffer();
    if (response.status !== status) throw new VoidRun(`${this.name} responded ${response.status} to a probe`);
    const acknowledgedAt = performance.now();
    // The time finds it by the key of the table.
    const sql = `
      SELECT count() FROM ${table}
      WHERE ${time} = fromUnixTimestamp64Milli(toInt64(${timeOf(number)}), 'UTC') AND ${uuid} = '${uuidOf(number)}'`;
    const isSeen = async () => Number(await engines.query(sql)) > 0;
    while (!(await isSeen())) await sleep(POLL_MS);
    return performance.now() - acknowledgedAt;
  }

  /** Waits until all of these events are stored, or nothing more is stored, and counts them. */
  async #settled(first: number, events: number): Promise<{ readonly distinct: number; readonly doubled: number }> {
    let seen = { rows: -1, distinct: 0, doubled: 0 };
    let changedAt = performance.now();
    for (;;) {
      const now = await this.#count(first, events);
      if (now.rows !== seen.rows) changedAt = performance.now();
      seen = now;
      const quietMs = now.distinct >= events ? QUIET_MS : QUIET_WHILE_MISSING_MS;
      if (performance.now() - changedAt >= quietMs) return seen;
      await sleep(500);
    }
  }

  async #count(first: number, events: number) {
    const { engines, table, uuid } = this.peer;
    const sql = `
      SELECT sum(copies), count(), countIf(copies > 1)
      FROM (
        SELECT ${uuid} AS id, count() AS copies
        FROM ${table}
        WHERE id BETWEEN '${uuidOf(first)}' AND '${uuidOf(first + events - 1)}'
        GROUP BY id
      )
      FORMAT TSV`;
    const [rows = 0, distinct = 0, doubled = 0] = (await engines.query(sql)).split('\t').map(Number);
    return { rows, distinct, doubled };
  }

  async #cpuTimes(): Promise<Record<string, number>> {
    const { engines, processes } = this.peer;
    const pids = {
      ingest: processes.ingest.pid,
      Kafka: engines.pidOf('Kafka'),
      ...(processes.sink && { sink: processes.sink.pid }),
      ClickHouse: engines.pidOf('ClickHouse'),
    };
    const times = Object.entries(pids).map(async ([role, pid]) => [role, await cpuTimeUs(pid)] as const);
    return Object.fromEntries(await Promise.all(times));
  }
}

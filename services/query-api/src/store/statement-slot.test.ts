import { loadConfig } from '@sluice/shared/config';
import { eventually } from '@sluice/shared/testing/eventually';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { configSchema } from '../config.ts';
import { QueryMetrics } from '../metrics.ts';
import { QueryRunner } from './query-runner.ts';
import { ConnectionFailure } from './read-failures.ts';
import { GivenUpStatements, StatementSlot } from './statement-slot.ts';

/** A statement of a server that answers as it is told. */
class Statement {
  readonly id: string;
  asked = 0;
  answer: boolean | Error = true;

  constructor(id: string) {
    this.id = id;
  }

  async isRunning(): Promise<boolean> {
    this.asked += 1;
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }
}

function aSlot(abandoned?: AbortSignal) {
  const givenUp = new GivenUpStatements();
  const freed: string[] = [];
  const slot = new StatementSlot(() => freed.push('freed'), 'a', givenUp);
  return { givenUp, freed, slot, watch: slot.watch(abandoned) };
}

test('a slot whose statements have ended is free at once, and once', () => {
  const { slot, watch, freed } = aSlot();
  const statement = new Statement('1');
  watch.onSent(statement);
  watch.onEnd('1');
  slot.release();
  slot.release();
  expect([freed, statement.asked]).toEqual([['freed'], 0]);
});

test('a slot stays taken while a statement runs and while the server cannot be asked, and the workspace is outliving', async () => {
  const { slot, watch, freed, givenUp } = aSlot();
  const statement = new Statement('1');
  watch.onSent(statement);
  slot.release();
  expect(givenUp.isOutliving('a')).toBe(false);
  await eventually(() => givenUp.isOutliving('a')).toBe(true);
  expect([givenUp.isOutliving('b'), givenUp.outlivingCount, freed]).toEqual([false, 1, []]);
  statement.answer = new Error('no connection');
  const { asked } = statement;
  await eventually(() => statement.asked > asked + 1).toBe(true);
  expect(freed).toEqual([]);
  statement.answer = false;
  await eventually(() => freed).toEqual(['freed']);
  expect([givenUp.isOutliving('a'), givenUp.outlivingCount]).toEqual([false, 0]);
});

test('a server that is away or given up holds no slot', async () => {
  const lost = aSlot();
  const statement = new Statement('1');
  statement.answer = new Error('no connection');
  lost.watch.onSent(statement);
  lost.watch.onLost('1');
  lost.slot.release();
  await eventually(() => lost.freed).toEqual(['freed']);

  const abandoned = aSlot(AbortSignal.abort());
  abandoned.watch.onSent(new Statement('2'));
  abandoned.slot.release();
  await eventually(() => abandoned.freed).toEqual(['freed']);
});

test('a statement that is sent after its slot was given back is not told to end', async () => {
  const { slot, watch, freed } = aSlot();
  const [givenUp, later] = [new Statement('1'), new Statement('2')];
  watch.onSent(givenUp);
  slot.release();
  watch.onSent(later);
  givenUp.answer = false;
  await eventually(() => freed).toEqual(['freed']);
  expect([givenUp.asked, later.asked]).toEqual([1, 0]);
});

test('a workspace gets no slot for SQL while a statement of it goes on, and others do', async () => {
  const config = loadConfig(configSchema, { CLICKHOUSE_URL: 'http://127.0.0.1:1', API_KEYS_FILE: 'keys.json' });
  const registry = new Registry();
  const stores = { areMirrored: false, choose: () => Promise.reject(new ConnectionFailure('there is none')) };
  const runner = new QueryRunner(stores, config, new QueryMetrics(registry));
  const outcome = async (workspace: string) =>
    await runner.reportSlot({ workspace }).then(
      (slot) => slot.release(),
      ({ code, message }) => `${code}: ${message}`,
    );
  const slot = await runner.reportSlot({ workspace: 'a' });
  const statement = new Statement('1');
  slot.watch().onSent(statement);
  slot.release();
  await eventually(() => outcome('a')).toMatch(/^overloaded: ClickHouse still runs an earlier statement/);
  expect(await outcome('b')).toBeUndefined();
  expect(await registry.metrics()).toContain('sluice_queries_outliving 1');
  statement.answer = false;
  await eventually(() => outcome('a')).toBeUndefined();
  runner.close();
});

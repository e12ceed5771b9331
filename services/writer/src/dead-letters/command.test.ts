import { randomUUID } from 'node:crypto';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createLogger } from '@sluice/shared/log';
import { expect, inject, onTestFinished, test } from 'vitest';
import { runDeadLettersCommand } from './command.ts';
import { deadLettersConfig } from './config.ts';
import { createDeadLetters } from './dead-letters.ts';

/** Would clear the screen, rename the window, write from right to left, and end the line. */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u009b31m\u202egnp.exe\u2028\u007f\r\u0000';

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys these
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

test('control characters in any field of a dead letter reach the terminal only escaped', async () => {
  const config = loadConfig(deadLettersConfig, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: `letters_${randomUUID().replaceAll('-', '')}`,
  });
  const logger = createLogger('test', 'silent');
  await migrate(config, logger);
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 10_000, connectionsMax: 1 });
  onTestFinished(async () => {
    await client.command({ query: `DROP DATABASE ${config.CLICKHOUSE_DATABASE}` });
    await client.close();
  });
  const text = (name: string) => `${name} ${HOSTILE}`;
  const deadLetter = {
    id: text('id'),
    kind: text('kind'),
    format: text('format'),
    topic: text('topic'),
    partition: 1,
    offset: 7,
    line: 0,
    reason: text('reason'),
    row: text('row'),
  };
  await client.insert({ table: 'dead_letters', values: [deadLetter], format: 'JSONEachRow' });
  const deadLetters = createDeadLetters(config, client, createKafka(config, 'test', logger));

  async function output(...args: string[]): Promise<string[]> {
    const lines: string[] = [];
    await runDeadLettersCommand(args, deadLetters, (line) => lines.push(line));
    return lines;
  }

  const shown = await output('show', deadLetter.id);
  const listed = await output('list');
  const unknown = await output('show', HOSTILE);
  for (const line of [...shown, ...listed, ...unknown]) expect(line).not.toMatch(OBEYED);
  for (const name of ['id', 'kind', 'format', 'topic', 'reason', 'row']) {
    expect(shown.filter((line) => line.includes(`${name} \\u001b[2J`))).toHaveLength(1);
  }
  for (const name of ['id', 'kind', 'topic', 'reason']) expect(listed[0]).toContain(`${name} \\u001b[2J`);
});

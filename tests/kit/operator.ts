import { Partitions } from '@sluice/cli/writer/partitions';
import { parse, runWriterCommand } from '@sluice/cli/writer/writer-command';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { configSchema } from '@sluice/writer/config';

export interface CommandOutcome {
  readonly code: number;
  readonly output: string;
}

/** Returns a function that runs `sluice writer …` on a pipeline, and declines every confirmation. */
export function operatorOf(options: {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  readonly name: string;
  readonly database: string;
}): (...args: string[]) => Promise<CommandOutcome> {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: options.kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: `${options.name}.`,
    CLICKHOUSE_URL: options.clickhouseUrl,
    CLICKHOUSE_DATABASE: options.database,
    ...WRITER_ACCOUNT,
  });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));

  return async (...args) => {
    const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 10_000, connectionsMax: 2 });
    const partitions = new Partitions(kafka, client, `${options.name}-writer`, Object.values(topicNames(config)));
    const lines: string[] = [];
    const terminal = { print: (line: string) => void lines.push(line), confirm: async () => false };
    try {
      const code = await runWriterCommand(parse(args), partitions, terminal);
      return { code, output: lines.join('\n') };
    } finally {
      await client.close();
    }
  };
}

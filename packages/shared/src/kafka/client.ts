import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import kafkajs, { type Kafka, type logCreator, type SASLOptions } from 'kafkajs';
import type { KafkaConfig } from '../config.ts';
import type { Logger } from '../log.ts';

const { CompressionCodecs, CompressionTypes } = kafkajs;

CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder: { buffer: Buffer }) => promisify(zstdCompress)(encoder.buffer),
  decompress: (buffer: Buffer) => promisify(zstdDecompress)(buffer),
});

/**
 * Creates a kafkajs client that logs through the service's logger. kafkajs logs every reconnection as an error, but
 * here an error means that a person is needed: its errors become warnings, and the rest debug messages.
 */
export function createKafka(config: KafkaConfig, clientId: string, logger: Logger): Kafka {
  return new kafkajs.Kafka({
    clientId,
    brokers: [...config.KAFKA_BROKERS],
    ssl: config.KAFKA_SSL,
    ...(config.KAFKA_SASL_MECHANISM && { sasl: saslOptions(config) }),
    connectionTimeout: 3_000,
    requestTimeout: 10_000,
    retry: { initialRetryTime: 100, maxRetryTime: 2_000, retries: 5 },
    logLevel: kafkajs.logLevel.INFO,
    logCreator: pinoLogCreator(logger.child({ module: 'kafka' })),
  });
}

function saslOptions(config: KafkaConfig): SASLOptions {
  return {
    mechanism: config.KAFKA_SASL_MECHANISM ?? 'plain',
    username: config.KAFKA_SASL_USERNAME ?? '',
    password: config.KAFKA_SASL_PASSWORD ?? '',
  } as SASLOptions;
}

function pinoLogCreator(logger: Logger): logCreator {
  return () =>
    ({ level, log: { message, timestamp: _timestamp, logger: _logger, ...fields } }) => {
      if (level <= kafkajs.logLevel.WARN) logger.warn(fields, message);
      else logger.debug(fields, message);
    };
}

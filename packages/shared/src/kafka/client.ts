import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import kafkajs, { type ISocketFactory, type Kafka, type logCreator, type Mechanism, type SASLOptions } from 'kafkajs';
import { kafkaHint } from '../base/connection-hints.ts';
import type { Logger } from '../base/log.ts';
import type { KafkaConfig } from '../config/config.ts';
import { TlsFiles } from '../tls/tls-files.ts';
import { tlsPaths } from '../tls/tls-material.ts';
import { bearerLogin } from './bearer-login.ts';

const { CompressionCodecs, CompressionTypes } = kafkajs;

CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder: { buffer: Buffer }) => promisify(zstdCompress)(encoder.buffer),
  decompress: (buffer: Buffer) => promisify(zstdDecompress)(buffer),
});

/** For how long a hint may explain why Kafka cannot be reached, in milliseconds. Connections are retried all the time. */
const HINT_MS = 15_000;

/** The last hint of each client. A connection that is retried says why only in kafkajs's log. */
const hints = new WeakMap<Kafka, { readonly hint: string; readonly at: number }>();

/** Returns which variables to check, when connections of this client fail. */
export function recentHint(kafka: Kafka): string | undefined {
  const last = hints.get(kafka);
  return last && performance.now() - last.at < HINT_MS ? last.hint : undefined;
}

/**
 * Creates a kafkajs client that logs through the service's logger. kafkajs logs every reconnection as an error, but
 * here an error means that a person is needed: its errors become warnings, and the rest debug messages.
 *
 * @throws {TlsFilesError} when the files of TLS cannot be used
 */
export function createKafka(config: KafkaConfig, clientId: string, logger: Logger): Kafka {
  const own = logger.child({ module: 'kafka' });
  const onHint = (hint: string) => void hints.set(kafka, { hint, at: performance.now() });
  const kafka: Kafka = new kafkajs.Kafka({
    clientId,
    brokers: [...config.KAFKA_BROKERS],
    ...(config.KAFKA_SSL && {
      ssl: true,
      socketFactory: tlsSocketFactory(new TlsFiles(tlsPaths(config, 'KAFKA_SSL'), own)),
    }),
    ...(config.KAFKA_SASL_MECHANISM && { sasl: saslOptions(config, own) }),
    connectionTimeout: 3_000,
    requestTimeout: 10_000,
    retry: { initialRetryTime: 100, maxRetryTime: 2_000, retries: 5 },
    logLevel: kafkajs.logLevel.INFO,
    logCreator: pinoLogCreator(own, onHint),
  });
  return kafka;
}

/**
 * Opens a connection to a broker as that client does, without a login.
 *
 * @throws {TlsFilesError} when the files of TLS cannot be used
 */
export function openConnection(config: KafkaConfig, host: string, port: number, logger: Logger): Socket {
  if (!config.KAFKA_SSL) return connectPlain({ host, port });
  const onConnect = () => undefined;
  return tlsSocketFactory(new TlsFiles(tlsPaths(config, 'KAFKA_SSL'), logger))({ host, port, onConnect, ssl: {} });
}

/** How long a connection is silent before TCP checks it, in milliseconds, as kafkajs's own sockets do. */
const KEEP_ALIVE_DELAY_MS = 60_000;

/** kafkajs would keep the files as they were at its creation. */
function tlsSocketFactory(files: TlsFiles): ISocketFactory {
  return ({ host, port, onConnect }) => {
    const name = isIP(host) ? {} : { servername: host };
    const socket = connect({ host, port, ...name, ...files.current() }, onConnect);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    return socket;
  };
}

function saslOptions(config: KafkaConfig, logger: Logger): SASLOptions | Mechanism {
  const { KAFKA_SASL_MECHANISM: mechanism = 'plain' } = config;
  if (mechanism === 'oauthbearer' || mechanism === 'aws-msk-iam') return bearerLogin(config, logger);
  const [username, password] = [config.KAFKA_SASL_USERNAME ?? '', config.KAFKA_SASL_PASSWORD ?? ''];
  return { mechanism, username, password } as SASLOptions;
}

/**
 * Errors in responses that a healthy system sees, by the request: a topic or a coordinator that is being created, a
 * leader that has just moved, a topic that another service created first. kafkajs sends the request again, or, when it
 * gives up, rejects the call, and the service reports that.
 */
const EXPECTED_ERRORS: Readonly<Record<string, readonly string[]>> = {
  Metadata: [
    'This server does not host this topic-partition',
    'There is no leader for this topic-partition as we are in the middle of a leadership election',
  ],
  CreateTopics: ['Topic creation errors'],
  GroupCoordinator: ['The group coordinator is not available'],
  ListOffsets: ['This server is not the leader for that topic-partition'],
  Fetch: ['This server is not the leader for that topic-partition'],
  Produce: ['This server is not the leader for that topic-partition'],
};

/** kafkajs warns once of a partitioner that version 2 replaced; Sluice chooses the partition of every record itself. */
const PARTITIONER_NOTICE = 'KafkaJS v2.0.0 switched default partitioner';

/** The writer itself logs each restart of its consumer. */
const CONSUMER_RESTARTS = 'Restarting the consumer in';

const EXPECTED_MESSAGES = [PARTITIONER_NOTICE, CONSUMER_RESTARTS];

function isExpected(message: string, error: unknown): boolean {
  if (EXPECTED_MESSAGES.some((expected) => message.startsWith(expected))) return true;
  const [, failedSend] = /^Failed to send messages: (.*)/.exec(message) ?? [];
  if (failedSend !== undefined) return EXPECTED_ERRORS['Produce']?.includes(failedSend) ?? false;
  const [, request = ''] = /^Response (\w+)\(/.exec(message) ?? [];
  return EXPECTED_ERRORS[request]?.some((expected) => expected === error) ?? false;
}

function pinoLogCreator(logger: Logger, onHint: (hint: string) => void): logCreator {
  return () =>
    ({ level, log: { message, timestamp: _timestamp, logger: _logger, ...fields } }) => {
      const isWarning = level <= kafkajs.logLevel.WARN && !isExpected(message, fields['error']);
      if (!isWarning) return logger.debug(fields, message);
      const hint = kafkaHint(`${message}\n${fields['error']}`);
      if (hint !== undefined) onHint(hint);
      logger.warn({ ...fields, ...(hint !== undefined && { hint }) }, message);
    };
}

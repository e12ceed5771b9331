import { createRequire } from 'node:module';
import { ConnectionBroken, ResponseTooLate } from '../world/network.ts';
import type { JoinRequest } from './consumer-group.ts';
import { createTopics, type NewTopic, type ProduceRequest, produce } from './produce.ts';
import {
  type CommitRequest,
  type CommittedRequest,
  ERROR_CODES,
  type FetchRequest,
  type Node,
  type SimulatedKafka,
  serverOf,
} from './simulated-kafka.ts';

/*
 * kafkajs itself runs in a simulation: its consumer, its admin client, its view of the cluster. Only the methods of a
 * connection to a broker are put in place of its own, which would encode requests and send them over a socket.
 */

const require = createRequire(import.meta.url);
const { resolve } = require;

/** How long kafkajs waits for a response, in milliseconds, as `createKafka` configures it. */
const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTION_TIMEOUT_MS = 3_000;

interface SimulatedConnection {
  readonly connectionPool: { readonly host: string; readonly port: number };
  nodeId: number | null;
  versions: unknown;
  /** The start of the node that it is connected to. */
  connectedTo?: number | undefined;
  /** Settles when the broker has served the produce requests so far. */
  produced?: Promise<unknown> | undefined;
}

type Method = (this: SimulatedConnection, given: never) => unknown;

interface KafkaJsErrors {
  readonly KafkaJSConnectionError: new (message: string, options: object) => Error;
  readonly KafkaJSConnectionClosedError: new (message: string, options: object) => Error;
  readonly KafkaJSRequestTimeoutError: new (message: string, options: object) => Error;
  readonly KafkaJSAggregateError: new (message: string, errors: readonly Error[]) => Error;
  readonly KafkaJSCreateTopicError: new (error: Error, topic: string) => Error;
}

const errors = fromKafkaJs('errors') as KafkaJsErrors;
const { createErrorFromCode, failure } = fromKafkaJs('protocol/error') as {
  readonly createErrorFromCode: (code: number) => Error;
  readonly failure: (code: number) => boolean;
};

/** Has kafkajs talk to a simulated cluster. Returns a function that undoes it. */
export function installBrokers(kafka: SimulatedKafka): () => void {
  const { prototype } = fromKafkaJs('broker') as { readonly prototype: Record<string, unknown> };
  const own = methodsOf(kafka);
  const before = Object.fromEntries(Object.keys(own).map((name) => [name, prototype[name]]));
  Object.assign(prototype, own);
  return () => {
    Object.assign(prototype, before);
  };
}

function methodsOf(kafka: SimulatedKafka): Record<string, Method> {
  /** Sends a request to the node of a connection, and turns errors into those of kafkajs. */
  async function send<Response>(
    connection: SimulatedConnection,
    what: string,
    serve: (node: Node) => Response | Promise<Response>,
    timeoutMs = REQUEST_TIMEOUT_MS,
  ): Promise<Response> {
    const { host, port } = connection.connectionPool;
    const node = kafka.nodeAt(host);
    try {
      if (!connection.connectedTo) await open(connection);
      return await kafka.network.request(
        serverOf(node),
        what,
        async () => {
          if (!node.isUp) throw new ConnectionBroken(true);
          return await serve(node);
        },
        timeoutMs,
      );
    } catch (error) {
      if (error instanceof ConnectionBroken) {
        connection.connectedTo = undefined;
        throw new errors.KafkaJSConnectionClosedError('Closed connection', { host, port });
      }
      if (error instanceof ResponseTooLate) {
        throw new errors.KafkaJSRequestTimeoutError('Request timed out', { broker: `${host}:${port}` });
      }
      const { type } = error as { readonly type?: keyof typeof ERROR_CODES };
      throw type && Object.hasOwn(ERROR_CODES, type) ? createErrorFromCode(ERROR_CODES[type]) : error;
    }
  }

  async function open(connection: SimulatedConnection): Promise<void> {
    const { host, port } = connection.connectionPool;
    const node = kafka.nodeAt(host);
    const connected = kafka.network.request(
      serverOf(node),
      'connect',
      async () => {
        if (!node.isUp) throw new ConnectionBroken(false);
      },
      CONNECTION_TIMEOUT_MS,
    );
    await connected.catch((error) => {
      const code = error instanceof ResponseTooLate ? 'ETIMEDOUT' : 'ECONNREFUSED';
      throw new errors.KafkaJSConnectionError('Connection error', { broker: `${host}:${port}`, code });
    });
    connection.connectedTo = node.starts;
    connection.produced = undefined;
    connection.versions = {};
  }

  function isConnected(connection: SimulatedConnection): boolean {
    const node = kafka.nodeAt(connection.connectionPool.host);
    return node.isUp && connection.connectedTo === node.starts;
  }

  const group = <Given, Response>(
    what: string,
    serve: (given: Given, node: Node) => Response | Promise<Response>,
    timeoutMs: (given: Given) => number = () => REQUEST_TIMEOUT_MS,
  ) =>
    function (this: SimulatedConnection, given: Given) {
      const atCoordinator = (node: Node) => {
        kafka.requireCoordinator(node);
        return serve(given, node);
      };
      return send(this, what, atCoordinator, timeoutMs(given));
    };

  return {
    isConnected(this: SimulatedConnection) {
      return isConnected(this);
    },
    async connect(this: SimulatedConnection) {
      if (!isConnected(this)) await open(this);
    },
    async disconnect(this: SimulatedConnection) {
      this.connectedTo = undefined;
    },
    async metadata(this: SimulatedConnection, topics: string[] = []) {
      return withoutErrors(await send(this, 'metadata', () => kafka.metadata(topics)));
    },
    fetch(this: SimulatedConnection, request: FetchRequest & { readonly keepErrors?: boolean }) {
      const timeoutMs = REQUEST_TIMEOUT_MS + request.maxWaitTime;
      // The admin client fetches one record like this.
      const what = request.maxBytes === 1 ? 'fetchRecord' : 'fetch';
      const responses = send(this, what, (node) => kafka.fetch(node, request), timeoutMs);
      return request.keepErrors ? responses : responses.then(withoutFailedPartitions);
    },
    produce(this: SimulatedConnection, request: ProduceRequest & { readonly keepErrors?: boolean }) {
      const sent = { by: kafka.time.process, atMs: kafka.time.nowMs };
      // A broker serves the requests of a connection one after the other.
      const inTurn = (node: Node) => {
        const produced = Promise.resolve(this.produced).then(() => produce(kafka, node, request, sent));
        this.produced = produced;
        return produced;
      };
      const responses = send(this, 'produce', inTurn).then((response) => {
        noteAcknowledged(kafka, response.topics);
        return response;
      });
      return request.keepErrors ? responses : responses.then(withoutRefusedPartitions);
    },
    async createTopics(this: SimulatedConnection, { topics }: { topics: readonly NewTopic[] }) {
      const topicErrors = await send(this, 'createTopics', (node) => createTopics(kafka, node, topics));
      const failed = topicErrors.filter(({ errorCode }) => failure(errorCode));
      if (failed.length === 0) return { topicErrors };
      throw new errors.KafkaJSAggregateError(
        'Topic creation errors',
        failed.map(({ topic, errorCode }) => new errors.KafkaJSCreateTopicError(createErrorFromCode(errorCode), topic)),
      );
    },
    async listOffsets(this: SimulatedConnection, { topics, keepErrors = false }: ListOffsetsRequest) {
      const found = await send(this, 'listOffsets', (node) => kafka.listOffsets(node, topics));
      for (const { errorCode } of found.responses.flatMap(({ partitions }) => partitions)) {
        if (!keepErrors && failure(errorCode)) throw createErrorFromCode(errorCode);
      }
      return found;
    },
    findGroupCoordinator(this: SimulatedConnection) {
      return send(this, 'findGroupCoordinator', () => {
        const node = kafka.nodes.find(({ nodeId }) => nodeId === kafka.coordinator);
        if (!node) throw createErrorFromCode(ERROR_CODES.GROUP_COORDINATOR_NOT_AVAILABLE);
        return { throttleTime: 0, errorCode: 0, coordinator: node };
      });
    },
    joinGroup: group(
      'joinGroup',
      (request: JoinRequest) => kafka.group(request.groupId).join(request),
      ({ rebalanceTimeout }) => rebalanceTimeout + REQUEST_TIMEOUT_MS,
    ),
    syncGroup: group(
      'syncGroup',
      async ({ groupId, memberId, generationId, groupAssignment }: SyncRequest) => ({
        memberAssignment: await kafka
          .group(groupId)
          .sync(memberId, generationId, new Map(groupAssignment.map((one) => [one.memberId, one.memberAssignment]))),
      }),
      () => 70_000,
    ),
    heartbeat: group('heartbeat', ({ groupId, memberId, groupGenerationId }: MemberRequest) =>
      kafka.group(groupId).heartbeat(memberId, groupGenerationId),
    ),
    leaveGroup: group('leaveGroup', ({ groupId, memberId }: MemberRequest) => kafka.group(groupId).leave(memberId)),
    offsetCommit: group('offsetCommit', (request: CommitRequest) => kafka.commit(request)),
    offsetFetch: group('offsetFetch', (request: CommittedRequest) => kafka.committed(request)),
    describeConfigs(this: SimulatedConnection) {
      return send(this, 'describeConfigs', () => ({ resources: [] }));
    },
    describeGroups: group('describeGroups', ({ groupIds }: { groupIds: readonly string[] }) => ({
      groups: groupIds.map((groupId) => ({
        ...{ errorCode: 0, groupId, state: kafka.group(groupId).state },
        members: kafka.group(groupId).memberIds.map((memberId) => ({ memberId })),
      })),
    })),
  };
}

interface ListOffsetsRequest {
  readonly topics: Parameters<SimulatedKafka['listOffsets']>[1];
  readonly keepErrors?: boolean;
}

interface MemberRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly groupGenerationId: number;
}

interface SyncRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly generationId: number;
  readonly groupAssignment: readonly { readonly memberId: string; readonly memberAssignment: Buffer }[];
}

/** As kafkajs reads metadata: a topic without any leader is an error. @throws kafkajs's errors */
function withoutErrors(metadata: ReturnType<SimulatedKafka['metadata']>): ReturnType<SimulatedKafka['metadata']> {
  for (const { topicErrorCode, partitionMetadata } of metadata.topicMetadata) {
    if (failure(topicErrorCode)) throw createErrorFromCode(topicErrorCode);
    const [first] = partitionMetadata;
    if (first && partitionMetadata.every(({ leader }) => leader < 0))
      throw createErrorFromCode(first.partitionErrorCode);
  }
  return metadata;
}

function noteAcknowledged(kafka: SimulatedKafka, topics: Awaited<ReturnType<typeof produce>>['topics']): void {
  for (const { topicName, partitions } of topics) {
    for (const { partition, errorCode, baseOffset } of partitions) {
      const log = kafka.log(topicName, partition);
      if (log && errorCode === 0) kafka.producers.acknowledged(log, Number(baseOffset));
    }
  }
}

/** @throws kafkajs's errors */
function withoutRefusedPartitions<Produced extends Awaited<ReturnType<typeof produce>>>(produced: Produced): Produced {
  for (const { errorCode } of produced.topics.flatMap(({ partitions }) => partitions)) {
    if (failure(errorCode)) throw createErrorFromCode(errorCode);
  }
  return produced;
}

/** @throws kafkajs's errors */
function withoutFailedPartitions<Fetched extends Awaited<ReturnType<SimulatedKafka['fetch']>>>(
  fetched: Fetched,
): Fetched {
  for (const { topicName: topic, partitions } of fetched.responses) {
    for (const { partition, errorCode } of partitions) {
      if (!failure(errorCode)) continue;
      const error = createErrorFromCode(errorCode);
      const isOutOfRange = errorCode === ERROR_CODES.OFFSET_OUT_OF_RANGE;
      throw isOutOfRange ? Object.assign(error, { name: 'KafkaJSOffsetOutOfRange', topic, partition }) : error;
    }
  }
  return fetched;
}

/** Loads a module of kafkajs that its package does not offer. */
function fromKafkaJs(path: string): unknown {
  return require(resolve('kafkajs').replace(/index\.js$/, `src/${path}`));
}

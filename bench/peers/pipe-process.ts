// The way in of the bare pipe, as a user would write it: Fastify and kafkajs, a message for each request with its events as
// rows of the table, and a response once all brokers that have to keep it have it. It checks nothing and knows no repeats.
import Fastify from 'fastify';
import kafkajs from 'kafkajs';

interface Submission {
  readonly foreignUserGroupId: string;
  readonly foreignUserId: string;
  readonly events: readonly {
    readonly event: string;
    readonly uuid: string;
    readonly timestamp: string;
    readonly anonymousId: string;
    readonly properties: unknown;
    readonly context: unknown;
  }[];
}

const [port, topic = '', ...brokers] = process.argv.slice(2);

const kafka = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.ERROR });
const producer = kafka.producer();
await producer.connect();

const app = Fastify({ bodyLimit: 4 * 1_024 * 1_024 });
app.post<{ Body: Submission }>('/v1/public/userGroups', async ({ body }, reply) => {
  await producer.send({ topic, acks: -1, messages: [{ value: rowsOf(body) }] });
  reply.code(202);
  return { status: 'accepted' };
});
await app.listen({ host: '127.0.0.1', port: Number(port) });

function rowsOf({ foreignUserGroupId, foreignUserId, events }: Submission): string {
  const received_at = Date.now() * 1_000;
  const rows = events.map(({ event, uuid, timestamp, anonymousId, properties, context }) =>
    JSON.stringify({
      ...{ workspace_id: 'test', timestamp: Date.parse(timestamp), uuid, event, user_id: foreignUserId },
      ...{ group_id: foreignUserGroupId, anonymous_id: anonymousId, properties, context, received_at },
    }),
  );
  return rows.join('\n');
}

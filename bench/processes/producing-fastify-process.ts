// What a user writes in an afternoon: Fastify and kafkajs, a message for each request, and a response once Kafka has it.
import Fastify from 'fastify';
import kafkajs from 'kafkajs';

const TOPIC = 'afternoon';
/** As many as those of the services. */
const PARTITIONS = 48;

const kafka = new kafkajs.Kafka({ brokers: process.argv.slice(2), logLevel: kafkajs.logLevel.ERROR });
const admin = kafka.admin();
await admin.connect();
await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: PARTITIONS }], waitForLeaders: true });
await admin.disconnect();
const producer = kafka.producer();
await producer.connect();

const app = Fastify({ bodyLimit: 4 * 1_024 * 1_024 });
app.post('/v1/public/userGroups', async (request, reply) => {
  await producer.send({ topic: TOPIC, acks: -1, messages: [{ value: JSON.stringify(request.body) }] });
  reply.code(202);
  return { status: 'accepted' };
});
process.on('disconnect', () => process.exit());
const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.(url);

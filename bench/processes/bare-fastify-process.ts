// The server that ingest-api is compared with: plain Fastify, which parses the same JSON and responds 202.
import Fastify from 'fastify';

const app = Fastify({ bodyLimit: 4 * 1_024 * 1_024 });
app.post('/v1/public/userGroups', async (_request, reply) => {
  reply.code(202);
  return { status: 'accepted' };
});
process.on('disconnect', () => process.exit());
const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.(url);

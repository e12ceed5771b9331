import { expect, test } from 'vitest';
import { createQueryClient, QueryError } from './query.ts';

test.each(['.', '..'])('the identifier "%s", which no address can name, reads nothing else instead', async (id) => {
  const query = createQueryClient({ url: 'http://127.0.0.1:1' });
  await expect(query.user(id)).rejects.toThrow(QueryError);
  await expect(query.organization(id)).rejects.toThrow(QueryError);
  await expect(query.organizationsOf(id).next()).rejects.toThrow(QueryError);
  await expect(query.usersOf(id).next()).rejects.toThrow(QueryError);
});

import type { FastifyInstance } from 'fastify';
import { type ReadDependencies, registerRead } from '../../store/read-route.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { sendPeople } from '../people/people-page.ts';
import { collectingSettings, reportRows } from '../report-runner.ts';
import { parseRetentionPeopleRequest } from './retention-people-parameters.ts';
import { type RetentionUserRow, retentionPeopleQuery } from './retention-people-query.ts';

/** Registers `GET /events/retention/people`: the users of a cohort, or those of them who came back in one interval. */
export function registerRetentionPeople(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  registerRead(app, {
    path: '/events/retention/people',
    parse: ({ query, workspace }) => parseRetentionPeopleRequest(query, workspace),
    async respond(request, context, reply) {
      const hiding = (tables: Tables, hidden: Sql | undefined) => retentionPeopleQuery(tables, request, hidden);
      const rows = await reportRows(queryRunner, { kind: 'retention', hiding, settings, ...context });
      const recordOf = ([, startedMs]: RetentionUserRow) => ({ startedAt: new Date(startedMs).toISOString() });
      return await sendPeople(reply, request.page, request.retention.selection, rows, recordOf);
    },
  });
}

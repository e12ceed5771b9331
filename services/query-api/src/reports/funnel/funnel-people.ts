import type { FastifyInstance } from 'fastify';
import { type ReadDependencies, registerRead } from '../../store/read-route.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { sendPeople } from '../people/people-page.ts';
import { collectingSettings, reportRows } from '../report-runner.ts';
import { parseFunnelPeopleRequest } from './funnel-people-parameters.ts';
import { type FunnelPersonRow, funnelPeopleQuery } from './funnel-people-query.ts';

/** Registers `GET /events/funnel/people`: who completed a step of a funnel, or dropped out before it. */
export function registerFunnelPeople(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  registerRead(app, {
    path: '/events/funnel/people',
    parse: ({ query, workspace }) => parseFunnelPeopleRequest(query, workspace),
    async respond(request, context, reply) {
      const hiding = (tables: Tables, hidden: Sql | undefined) => funnelPeopleQuery(tables, request, hidden);
      const rows = await reportRows(queryRunner, { kind: 'funnel', hiding, settings, ...context });
      const recordOf = ([, startedMs, reachedMs]: FunnelPersonRow) => ({
        startedAt: new Date(startedMs).toISOString(),
        reachedAt: new Date(reachedMs).toISOString(),
      });
      return await sendPeople(reply, request.page, request.funnel.selection, rows, recordOf);
    },
  });
}

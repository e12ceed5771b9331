import { z } from 'zod';
import type { Sql } from '../clickhouse/sql.ts';
import { EVENT_COLUMNS } from '../events/event-columns.ts';

/** The fields that a report can group by. */
const GROUP_FIELDS = ['event', 'type', 'userId', 'groupId', 'instanceId'] as const;

export type GroupField = (typeof GROUP_FIELDS)[number];

export const groupFieldParameter = z.enum(GROUP_FIELDS, `must be one of ${GROUP_FIELDS.join(', ')}`);

/** Returns the key of an event's group, as JSON text. */
export function groupKey(field: GroupField): Sql {
  const { column } = EVENT_COLUMNS[field];
  return { sql: `if(${column} = '', 'null', toJSONString(toString(${column})))`, params: {} };
}

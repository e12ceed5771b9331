import { groupsOf } from '../../records/entities/candidates.ts';
import type { EventSelection } from '../../records/events/event-selection.ts';
import type { HidingStatement, QueryContext } from '../../store/query.ts';
import type { QueryRunner } from '../../store/query-runner.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { REPORT } from '../report-runner.ts';
import { NAMES_SETTINGS, type NameColumn, namesQuery, shownTimesQuery } from './names-query.ts';

/** The events of one name and type. Times in milliseconds. */
export interface EventName {
  readonly event: string;
  readonly type: string;
  readonly count: number;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** What a menu is about: the events, and what its entries begin with. */
export interface MenuRequest {
  readonly selection: EventSelection;
  /** Empty for everything. */
  readonly prefix: string;
  readonly limit: number;
}

type NameRow = [event: string, type: string, count: number, ...TimesOfName, ...TimesOfName];
type TimesOfName = [firstMs: number, lastMs: number];
type TimesRow = [event: string, type: string, ...TimesOfName];

/** Reads names and types of events, those with most events first. Every number is exact. */
export async function readEventNames(
  queryRunner: Pick<QueryRunner, 'all'>,
  request: MenuRequest,
  context: QueryContext,
): Promise<readonly EventName[]> {
  const run = async (hiding: HidingStatement['hiding']) =>
    await queryRunner.all({ kind: 'event_names', settings: NAMES_SETTINGS, ...context, ...REPORT, hiding });
  let subtractsHidden = false;
  const rows = (await run((tables, hidden) => {
    subtractsHidden = hidden !== undefined;
    return namesQuery(tables, { ...request, columns: ['event', 'type'] }, hidden);
  })) as NameRow[];
  const isHidden = ([, , , firstMs, lastMs, hiddenFirstMs, hiddenLastMs]: NameRow) =>
    subtractsHidden && (hiddenFirstMs === firstMs || hiddenLastMs === lastMs);
  const unsure = [...new Set(rows.filter(isHidden).map(([event]) => event))];
  const shown = new Map<string, TimesOfName>();
  for (const names of groupsOf(unsure)) {
    const times = (await run((tables, hidden) =>
      shownTimesQuery(tables, request.selection, names, hidden),
    )) as TimesRow[];
    for (const [event, type, ...seen] of times) shown.set(JSON.stringify([event, type]), seen);
  }
  return rows.flatMap((row) => {
    const [event, type, count, firstMs, lastMs] = row;
    const times = isHidden(row) ? shown.get(JSON.stringify([event, type])) : ([firstMs, lastMs] as const);
    // Without times, the last event of this name was erased between the two queries.
    return times ? [{ event, type, count, firstSeenMs: times[0], lastSeenMs: times[1] }] : [];
  });
}

/** Reads the values of a column with few of them, and in how many events each is. Every number is exact. */
export async function readNameValues(
  queryRunner: Pick<QueryRunner, 'all'>,
  column: NameColumn,
  request: MenuRequest,
  context: QueryContext,
): Promise<readonly { readonly value: string; readonly count: number }[]> {
  const hiding = (tables: Tables, hidden: Sql | undefined) =>
    namesQuery(tables, { ...request, columns: [column] }, hidden);
  const rows = await queryRunner.all({ kind: 'event_names', settings: NAMES_SETTINGS, ...context, ...REPORT, hiding });
  return rows.map(([value, count]) => ({ value: value as string, count: count as number }));
}

import { z } from 'zod';
import { once } from '../http/http.ts';
import {
  type EventSelection,
  isOwnerDocument,
  isOwnerTime,
  ownerOf,
  readSegments,
  whereSelected,
} from '../records/records.ts';
import type { QueryContext, QueryOptions, QueryRunner } from '../store/store.ts';
import { reportRows } from './report-runner.ts';
import type { ReportSelection } from './report-selection.ts';

// A filter by organizations finds nothing where none of them matches, and also where events name none. A report that found
// nothing says which of these it is.

/** The events that match the filters of a report, but for those by organizations. */
export interface EventsWithOrganization {
  readonly events: number;
  /** How many of them name an organization. */
  readonly withOrganization: number;
}

/** The member of a report's response. */
export interface FoundNothing {
  readonly withoutOrganizationFilters?: EventsWithOrganization;
}

/**
 * Returns the member of a report that found nothing: none where no filter is by organizations, and where the count takes longer
 * than a report may.
 *
 * @throws {Problem} as {@link reportRows} does
 */
export async function countWithOrganization(
  queryRunner: Pick<QueryRunner, 'all'>,
  selection: ReportSelection,
  { kind, ...context }: QueryContext & Pick<QueryOptions, 'kind'>,
): Promise<FoundNothing> {
  const others = withoutOrganizations(selection);
  const isFiltered =
    others.fields.length < selection.fields.length || others.properties.length < selection.properties.length;
  if (!isFiltered) return {};
  const [row] =
    (await reportRows(queryRunner, {
      ...{ kind, ...context },
      hiding: (tables, hidden) => {
        const { sql, params } = whereSelected(tables, { ...selection, ...others }, hidden);
        return { sql: `SELECT count(), countIf(group_id != '') FROM ${tables.events}\n${sql}`, params };
      },
    })) ?? [];
  if (!row) return {};
  const [events, withOrganization] = row as [number, number];
  return { withoutOrganizationFilters: { events, withOrganization } };
}

/** Returns the filters that are not by organizations. */
function withoutOrganizations({ fields, properties }: EventSelection): Pick<EventSelection, 'fields' | 'properties'> {
  return {
    fields: fields.filter(({ field, condition }) => {
      if (field === 'segment') return readSegments({ field, condition }).every(({ of }) => of === 'user');
      return !(isOwnerTime(field) && ownerOf(field) === 'organization');
    }),
    properties: properties.filter(
      ({ document }) => !(isOwnerDocument(document) && ownerOf(document) === 'organization'),
    ),
  };
}

/** Describes the member of {@link FoundNothing}. */
export const foundNothingSchemas = once(() => {
  const count = z.int().min(0);
  return {
    withoutOrganizationFilters: z
      .object({
        events: count,
        withOrganization: count.meta({ description: 'How many of them name an organization.' }),
      })
      .meta({ id: 'EventsWithOrganization' })
      .optional()
      .meta({
        description:
          'Only where filters by organizations of all events found nothing: how many events of the range match the other filters.',
      }),
  };
});

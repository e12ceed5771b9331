import { z } from 'zod';

/** The reports that a view can be of: `GET /events/<report>`, and `sql`, a statement of `POST /queries`. */
export const REPORTS = ['series', 'funnel', 'retention', 'values', 'sql'] as const;
export type Report = (typeof REPORTS)[number];

export const VIEWS_MAX = 1_000;
export const DASHBOARDS_MAX = 200;
export const TILES_MAX = 50;
/** Links of a dashboard. */
export const LINKS_MAX = 20;
/** Characters of a name. */
export const NAME_CHARACTERS_MAX = 200;
/** Parameters of a view, and the text of each, in characters. */
export const PARAMETERS_MAX = 50;
export const PARAMETER_CHARACTERS_MAX = 2_000;
/** Characters of the statement of a view of SQL. */
export const VIEW_SQL_CHARACTERS_MAX = 10_000;
/** Characters of a note. */
export const NOTE_CHARACTERS_MAX = 2_000;
/** The largest body, in bytes. */
export const VIEW_BODY_BYTES_MAX = 32 * 1_024;

const name = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(NAME_CHARACTERS_MAX, `must have at most ${NAME_CHARACTERS_MAX} characters`);

const report = z.enum(REPORTS, `must be one of ${REPORTS.join(', ')}`).meta({
  description:
    'The report: that of `GET /events/<report>`, or `sql`: a statement of `POST /queries`, for which the key needs the scope `sql`.',
});

const parameters = z
  .record(z.string(), z.string())
  .refine((value) => Object.keys(value).length <= PARAMETERS_MAX, `must have at most ${PARAMETERS_MAX} members`)
  .superRefine((value, context) => {
    for (const [name, { length }] of Object.entries(value)) {
      const most = name === 'sql' ? VIEW_SQL_CHARACTERS_MAX : PARAMETER_CHARACTERS_MAX;
      if (length > most) {
        context.addIssue({ code: 'custom', path: [name], message: `must have at most ${most} characters` });
      }
    }
  })
  .meta({
    description:
      'The parameters of the report; of `sql` one, `sql`, the statement. The others have those of the console as well: `range` (a number with `h`, `d` or `m` for hours, days or months: the time up to now, instead of `startDate`), `form` and `markers`. A `timeZone` says what a day is, for every report.',
    example: { event: 'signed_up', range: '30d', groupBy: 'properties.plan', timeZone: 'Europe/Berlin' },
  });

/** The body of `POST /views`. */
export const newViewSchema = z
  .strictObject({ name, report, parameters: parameters.default({}) })
  .meta({ id: 'NewView' });

/** The body of `PATCH /views/ID`: what is missing stays as it is. */
export const viewChangeSchema = z
  .strictObject({ name: name.optional(), report: report.optional(), parameters: parameters.optional() })
  .meta({ id: 'ViewChange' });

/** A view as it is stored. */
export type View = z.output<typeof newViewSchema>;

const tile = z
  .strictObject({
    view: z
      .uuid('must be the id of a view')
      .transform((id) => id.toLowerCase())
      .optional(),
    note: z
      .string()
      .trim()
      .min(1, 'must not be empty')
      .max(NOTE_CHARACTERS_MAX, `must have at most ${NOTE_CHARACTERS_MAX} characters`)
      .optional()
      .meta({ description: 'A text in place of a view.' }),
    width: z.union([z.literal(1), z.literal(2)], 'must be 1 or 2').meta({ description: 'How many columns it takes.' }),
  })
  .superRefine(({ view, note }, context) => {
    if ((view === undefined) === (note === undefined))
      context.addIssue({ code: 'custom', message: 'must have either a view or a note' });
  });

const tiles = z
  .array(tile)
  .max(TILES_MAX, `must be ${TILES_MAX} at most`)
  .superRefine((given, context) => {
    for (const [index, { view }] of given.entries()) {
      if (view === undefined || given.findIndex((other) => other.view === view) === index) continue;
      context.addIssue({ code: 'custom', path: [index, 'view'], message: 'must be in a dashboard once' });
    }
  })
  .meta({ description: 'The views and notes, in their order.' });

/** The body of `POST /dashboards`. */
export const newDashboardSchema = z.strictObject({ name, tiles: tiles.default([]) }).meta({ id: 'NewDashboard' });

/** The body of `PATCH /dashboards/ID`: what is missing stays as it is. */
export const dashboardChangeSchema = z
  .strictObject({ name: name.optional(), tiles: tiles.optional() })
  .meta({ id: 'DashboardChange' });

/** A dashboard as it is stored. */
export type Dashboard = z.output<typeof newDashboardSchema>;

/** Returns the views of tiles. */
export function viewsOf(tiles: Dashboard['tiles']): string[] {
  return tiles.flatMap(({ view }) => view ?? []);
}

/** The body of `POST /dashboards/ID/links`. */
export const newLinkSchema = z
  .strictObject({ name: name.meta({ description: 'For whom it is, such as the screen that shows it.' }) })
  .meta({ id: 'NewDashboardLink' });

/** A link as it is stored: never its key. */
export interface Link {
  readonly name: string;
  readonly dashboard: string;
  /** The SHA-256 of the key, in hex. */
  readonly hash: string;
}

import { z } from 'zod';
import { NAME_CHARACTERS_MAX } from '../manage/manage.ts';
import { stateParameter, urlParameter } from '../webhooks/webhooks.ts';
import { WINDOW_RANGE, windowOf } from './alert-window.ts';

/** Alerts of a workspace. */
export const ALERTS_MAX = 50;

/** Evaluations in a row in which a condition has to hold. */
export const FOR_MAX = 100;

/** How messages look: signed JSON, or the text that Slack and others take. */
export const FORMATS = ['signed', 'slack'] as const;
export type Format = (typeof FORMATS)[number];

export const nameParameter = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(NAME_CHARACTERS_MAX, `must have at most ${NAME_CHARACTERS_MAX} characters`);

export const formatParameter = z.enum(FORMATS, `must be one of ${FORMATS.join(', ')}`).meta({
  description:
    '`signed`: JSON, signed as Standard Webhooks says. `slack`: `{"text": "…"}`, as Slack and others take it.',
});

const number = z.number('must be a number');

const condition = z
  .discriminatedUnion(
    'is',
    [
      z.strictObject({ is: z.literal(['above', 'below']), threshold: number }),
      z.strictObject({
        is: z.literal('changes'),
        percent: number.gt(0, 'must be above 0').max(1_000_000, 'must be 1,000,000 at most'),
      }),
      z.strictObject({ is: z.literal('absent') }),
    ],
    'must have a member is: above, below, changes or absent',
  )
  .meta({
    description:
      'When it fires: while the number is above or below `threshold`; changes by `percent` or more, up or down, from the window before; or is `absent`: 0, or no number.',
    example: { is: 'below', threshold: 100 },
  });

const fields = {
  name: nameParameter,
  view: z
    .uuid('must be the id of a view')
    .transform((id) => id.toLowerCase())
    .meta({
      description: 'A view of the report `series`. Its total is the number, with its filters, segments and measure.',
    }),
  condition,
  window: z
    .string()
    .refine((text) => windowOf(text) !== undefined, `must be ${WINDOW_RANGE}`)
    .meta({
      description: `How long the time is whose number is taken: ${WINDOW_RANGE}. It ends with a whole minute, hour or day of the time zone of the view, and is evaluated once for each.`,
      example: '1h',
    }),
  for: z
    .int('must be a whole number')
    .min(1, 'must be 1 at least')
    .max(FOR_MAX, `must be ${FOR_MAX} at most`)
    .meta({ description: 'In how many evaluations in a row the condition has to hold before it fires.' }),
  url: urlParameter,
  format: formatParameter,
};

/** The body of `POST /alerts`. */
export const newAlertSchema = z
  .strictObject({ ...fields, for: fields.for.default(1), format: fields.format.default('signed') })
  .meta({ id: 'NewAlert' });

/** The body of `PATCH /alerts/ID`: what is missing stays as it is. */
export const alertChangeSchema = z
  .strictObject({ ...z.strictObject(fields).partial().shape, state: stateParameter.optional() })
  .meta({ id: 'AlertChange' });

/** What is stored of an alert besides its address. */
export type Alert = Omit<z.output<typeof newAlertSchema>, 'url'>;

export type Condition = Alert['condition'];

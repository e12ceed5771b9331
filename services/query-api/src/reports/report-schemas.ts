import { z } from 'zod';
import { timeSchema } from '../http/openapi-schemas.ts';

/** What the responses of all reports end with. */
export const reportEndSchemas = {
  startDate: timeSchema.meta({ description: 'The first time that was applied, in UTC.' }),
  endDate: timeSchema.meta({ description: 'The last time that was applied, in UTC.' }),
  complete: z.boolean().meta({ description: 'Whether the query finished within its time.' }),
  exact: z.boolean().meta({ description: 'Whether every number is exact.' }),
};

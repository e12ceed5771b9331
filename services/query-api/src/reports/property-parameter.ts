import { z } from 'zod';
import { propertyNameError } from '../records/records.ts';

/** What the path of a property begins with: `properties.<name>`. */
export const PROPERTIES = 'properties.';

/**
 * Returns the name in the path of a property, for the transform of a parameter. Any other text is refused.
 *
 * @param message what is wrong with a text that is no such path
 */
export function propertyOfPath(path: string, context: z.core.$RefinementCtx, message: string): string {
  const name = path.slice(PROPERTIES.length);
  const error = path.startsWith(PROPERTIES) ? propertyNameError(name) : message;
  if (error === undefined) return name;
  context.addIssue({ code: 'custom', message: error });
  return z.NEVER;
}

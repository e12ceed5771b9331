import { invalidRequest } from '@sluice/shared/http/problem';
import { workspaceName } from '@sluice/shared/keys/keys-file';
import { jsonObject } from '@sluice/submissions/reading/json-object';
import { z } from 'zod';

const name = z
  .string('must be a string')
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .meta({ description: 'The name, which no other workspace has.' });

const properties = jsonObject.optional().meta({ description: 'Any JSON object.' });

/** The body of `POST /workspaces`. Unknown members do nothing, as in Trench. */
export const newWorkspace = z
  .object({
    name,
    databaseName: workspaceName
      .optional()
      .meta({ description: 'The workspace of Sluice. Default: a new one, which is called as `workspaceId`.' }),
    isDefault: z.boolean('must be true or false').default(false).meta({ description: 'Is kept, and decides nothing.' }),
    properties,
  })
  .meta({ id: 'NewWorkspace' });

/** The body of `PUT /workspaces/{workspaceId}`. */
export const changedWorkspace = z.object({ name, properties }).meta({ id: 'ChangedWorkspace' });

export type NewWorkspace = z.output<typeof newWorkspace>;
export type ChangedWorkspace = z.output<typeof changedWorkspace>;

/** A workspace as a response shows it. */
export const shownWorkspace = z
  .object({
    workspaceId: z.string(),
    name: z.string(),
    databaseName: z.string(),
    isDefault: z.boolean(),
    createdAt: z.string(),
    properties: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'Workspace' });

export type ShownWorkspace = z.output<typeof shownWorkspace>;

/** The response to a creation: the only time that the keys are shown. */
export const createdWorkspace = shownWorkspace
  .extend({ privateApiKey: z.string(), publicApiKey: z.string() })
  .meta({ id: 'CreatedWorkspace' });

export type CreatedWorkspace = z.output<typeof createdWorkspace>;

/** @throws {Problem} `invalid_request` naming every error */
export function parseWorkspace<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const { success, data, error } = schema.safeParse(body);
  if (success) return data;
  throw invalidRequest(error.issues);
}

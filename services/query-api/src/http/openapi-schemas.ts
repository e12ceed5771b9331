import type { OperationDescription } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { LIMIT_MAX } from './limits.ts';

/** What all operations of query-api have in common. */
export type CommonDescription = Pick<Required<OperationDescription>, 'scope' | 'keyOptional' | 'codes'>;

export const timeSchema = z.string().meta({ format: 'date-time', description: 'In UTC, with milliseconds.' });
export const jsonObjectSchema = z.record(z.string(), z.unknown());
export const limitSchema = z.int().min(0).max(LIMIT_MAX).meta({ description: 'The limit that was applied.' });
export const nextCursorSchema = z
  .string()
  .nullable()
  .meta({ description: 'Where the next page begins; `null` at the end.' });

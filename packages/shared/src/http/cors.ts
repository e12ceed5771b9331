import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance } from 'fastify';

/**
 * Lets pages of these origins send requests, and read the headers of responses that clients need.
 *
 * @param origins without one, browsers send nothing from other origins
 * @param options the methods, and what else a service allows; headers: default those that a preflight asks for
 */
export function allowOrigins(
  app: FastifyInstance,
  origins: readonly string[],
  options: Pick<FastifyCorsOptions, 'methods' | 'allowedHeaders' | 'credentials'>,
): void {
  if (origins.length === 0) return;
  const exposedHeaders = ['x-request-id', 'retry-after'];
  app.register(cors, { ...options, origin: [...origins], exposedHeaders, maxAge: 86_400 });
}

import type { QueryService } from './query-service.ts';

export interface ViewResponse {
  readonly status: number;
  readonly body: Record<string, unknown> & { readonly id: string; readonly key: string; readonly code: string };
  /** The paths of its errors. */
  readonly paths: readonly string[];
}

/** Sends a request with a key; the default is that of workspace `a`. */
export async function send(
  { app }: Pick<QueryService, 'app'>,
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  url: string,
  payload?: object,
  key = 'a',
): Promise<ViewResponse> {
  const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
  const response = await app.inject({ method, url, headers, ...(payload && { payload }) });
  const body = (response.body === '' ? {} : response.json()) as ViewResponse['body'];
  const errors = (body['errors'] ?? []) as readonly { readonly path: string }[];
  return { status: response.statusCode, body, paths: errors.map(({ path }) => path) };
}

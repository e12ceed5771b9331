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

/** What is saved as a view. */
export const VIEW = { name: 'Count', report: 'series', parameters: { interval: 'none' } };

/** Creates a dashboard with a view and a link, in a workspace. */
export async function shareDashboard(query: Pick<QueryService, 'app'>, workspace: string) {
  const view = (await send(query, 'POST', '/views', VIEW, workspace)).body.id;
  const given = { name: 'Wall', tiles: [{ view, width: 1 }] };
  const dashboard = `/dashboards/${(await send(query, 'POST', '/dashboards', given, workspace)).body.id}`;
  const { body } = await send(query, 'POST', `${dashboard}/links`, { name: 'Screen' }, `admin-${workspace}`);
  return { view, dashboard, tile: `${dashboard}/tiles/${view}`, link: `${dashboard}/links/${body.id}`, key: body.key };
}

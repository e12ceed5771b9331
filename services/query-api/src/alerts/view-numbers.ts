import type { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import { type View, type Views, viewQuery, viewsOf } from '../manage/manage.ts';
import { type SeriesNumber, seriesNumber } from '../reports/reports.ts';
import { type ReadDependencies, RequestStore, SerialQueue, type Stores } from '../store/store.ts';
import type { TimeSpan } from './alert-window.ts';

export interface ViewNumbersOptions extends ReadDependencies {
  readonly stores: Stores;
  readonly memory: Pick<MemoryBudget, 'open'>;
  readonly views: Pick<Views, 'views' | 'dashboards' | 'segments'>;
}

/** The parameters of a view's lines: its number is that of all of them. */
const OF_LINES = ['groupBy', 'groups', 'compare'];

/** The parameters of its time. */
const OF_TIME = ['startDate', 'endDate', 'range'];

/**
 * The numbers of views, as their tiles show them: by the same reader, in the slots of reports of the workspace. Of a workspace it
 * reads one after the other, whatever number of them is due.
 */
export class ViewNumbers {
  readonly #options: ViewNumbersOptions;
  readonly #read: ReturnType<typeof seriesNumber>;
  readonly #queue = new SerialQueue();

  constructor(options: ViewNumbersOptions) {
    this.#options = options;
    this.#read = seriesNumber(options);
  }

  /** Returns a view that has a number. @throws {Problem} `not_found`, and `invalid_request` if it has none */
  async view(workspace: string, id: string): Promise<View> {
    const { content } = await this.#options.views.views.find(workspace, id);
    if (content.report === 'series') return content;
    throw new Problem('invalid_request', 'The view is no longer one of the report series.');
  }

  /** Returns the name of a dashboard, and the views that it draws as a number, in its order. @throws {Problem} */
  async dashboard(workspace: string, id: string) {
    const { views, dashboards } = this.#options.views;
    const { content } = await dashboards.find(workspace, id);
    const heads = await views.heads(workspace, viewsOf(content.tiles));
    const drawn = new Set(
      heads.flatMap(({ view, report, form }) => (report === 'series' && form === 'number' ? view : [])),
    );
    const ids = viewsOf(content.tiles).filter((view) => drawn.has(view));
    const found = await Promise.all(ids.map(async (view) => ({ id: view, view: await this.view(workspace, view) })));
    return { name: content.name, views: found };
  }

  /** Returns the number of a view over a time. @throws {Problem} */
  async over(workspace: string, view: View, { startMs, endMs }: TimeSpan, signal: AbortSignal): Promise<number | null> {
    const parameters = without(view.parameters, OF_TIME);
    const dates = { startDate: new Date(startMs).toISOString(), endDate: new Date(endMs - 1).toISOString() };
    return (await this.#number(workspace, { ...parameters, ...dates }, signal)).value;
  }

  /** Returns the number of a view over its range up to a time, and over the time before. @throws {Problem} */
  async upTo(workspace: string, view: View, endMs: number, signal: AbortSignal): Promise<SeriesNumber> {
    const parameters = { endDate: new Date(endMs - 1).toISOString(), ...view.parameters };
    return await this.#number(workspace, parameters, signal, { compare: 'previous' }, endMs - 1);
  }

  async #number(
    workspace: string,
    parameters: View['parameters'],
    signal: AbortSignal,
    more: View['parameters'] = {},
    nowMs = Date.now(),
  ): Promise<SeriesNumber> {
    const given = { ...without(parameters, OF_LINES), interval: 'none', ...more };
    const { query, errors } = viewQuery({ report: 'series', parameters: given }, new Date(nowMs));
    if (errors.length > 0) throw new Problem('invalid_request', 'The view has an error.', { errors });
    return await this.#queue.run(workspace, async () => {
      const { memory, stores, views } = this.#options;
      const known = await views.segments.inQuery(workspace, query);
      const reserved = memory.open({ hash: `alerts of ${workspace}`, workspace });
      try {
        return await this.#read(known, { workspace, memory: reserved, store: new RequestStore(stores), signal });
      } finally {
        reserved.release();
      }
    });
  }
}

function without(parameters: View['parameters'], names: readonly string[]): View['parameters'] {
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !names.includes(name)));
}

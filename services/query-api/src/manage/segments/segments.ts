import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { SEGMENTS_MAX } from '../../http/http.ts';
import {
  type KnownSegments,
  namesSegments,
  SEGMENT_PARAMETER,
  type SegmentDefinition,
  segmentOf,
  withSegments,
} from '../../records/records.ts';
import { SerialQueue } from '../../store/store.ts';
import { ConsoleDocuments, orStoreAway, type StoredDocument } from '../views/console-documents.ts';

/** A segment as it is stored. */
export interface NamedSegment extends SegmentDefinition {
  readonly name: string;
}

/** What names a segment. */
export interface SegmentUse {
  readonly kind: 'view' | 'webhook';
  readonly id: string;
  /** Empty for a webhook, which has none. */
  readonly name: string;
}

/** The condition that an object of texts has a parameter that names the segment. */
const namesIn = (json: string, ...path: readonly string[]) =>
  `arrayExists(one -> match(one.1, {parameter:String}) AND has(splitByChar(',', one.2), {name:String}),
    JSONExtractKeysAndValues(${[json, ...path].join(', ')}, 'String'))`;

const USES = `
SELECT 'view' AS kind, toString(id) AS id, JSONExtractString(content, 'name') AS name
FROM console_documents FINAL
PREWHERE kind = 'view' AND workspace_id = {workspace:String}
WHERE NOT is_deleted AND ${namesIn('content', "'parameters'")}
UNION ALL
SELECT 'webhook', toString(id), ''
FROM webhooks FINAL
PREWHERE workspace_id = {workspace:String}
WHERE NOT is_deleted AND ${namesIn('filter')}
LIMIT 20`;

/**
 * The segments of all workspaces. They are stored beside saved views, each with an identifier of its own; where two instances
 * create one of a name at once, the older one counts. Its methods throw Problems.
 */
export class Segments implements KnownSegments {
  readonly #client: ClickHouseClient;
  readonly #documents: ConsoleDocuments<NamedSegment>;
  /** Stores and deletes those of a workspace one after the other. */
  readonly #changes = new SerialQueue();
  /** The reads under way, by workspace: requests at once share one. */
  readonly #reads = new Map<string, Promise<readonly StoredDocument<NamedSegment>[]>>();

  /** @param client with the account that stores them */
  constructor(client: ClickHouseClient) {
    this.#client = client;
    this.#documents = new ConsoleDocuments(client, 'segment');
  }

  /** Returns those of a workspace, by their names. */
  async all(workspace: string): Promise<ReadonlyMap<string, StoredDocument<NamedSegment>>> {
    const reading = this.#reads.get(workspace) ?? this.#read(workspace);
    this.#reads.set(workspace, reading);
    try {
      // Oldest first: of two with a name, the older one is set last.
      return new Map((await reading).toReversed().map((document) => [document.content.name, document]));
    } finally {
      if (this.#reads.get(workspace) === reading) this.#reads.delete(workspace);
    }
  }

  async #read(workspace: string): Promise<readonly StoredDocument<NamedSegment>[]> {
    return (await orStoreAway(this.#documents.page(workspace, { limit: 2 * SEGMENTS_MAX }))).documents;
  }

  readonly inQuery = async (workspace: string, query: QueryParameters): Promise<QueryParameters> => {
    if (!namesSegments(query)) return query;
    const known = await this.all(workspace);
    return withSegments(query, new Map([...known].map(([name, { content }]) => [name, segmentOf(content)])));
  };

  /** @throws {Problem} `not_found` */
  async find(workspace: string, name: string): Promise<StoredDocument<NamedSegment>> {
    const found = (await this.all(workspace)).get(name);
    if (!found) throw new Problem('not_found', 'The workspace has no such segment.');
    return found;
  }

  /** Stores what a segment is. A webhook that names it gets no behaviour. @throws {Problem} `segment_in_use` */
  async put(workspace: string, segment: NamedSegment): Promise<StoredDocument<NamedSegment>> {
    return await this.#changing(workspace, async () => {
      const known = await this.all(workspace);
      const before = known.get(segment.name);
      if (!before) await this.#create(workspace, segment, known.size);
      else {
        if (segment.behaviour.length > 0) await this.#requireUnused(workspace, segment.name, ['webhook']);
        await orStoreAway(this.#documents.change(workspace, before.id, async () => segment));
      }
      return await this.#found(workspace, segment.name);
    });
  }

  async #create(workspace: string, segment: NamedSegment, count: number): Promise<void> {
    if (count >= SEGMENTS_MAX) {
      throw new Problem('invalid_request', `There are ${SEGMENTS_MAX} segments already; delete one.`, {
        errors: [{ path: 'segments', code: 'too_many', message: `must be ${SEGMENTS_MAX} at most` }],
      });
    }
    await orStoreAway(this.#documents.save(workspace, randomUUID(), segment, Date.now()));
  }

  /** @throws {Problem} `not_found`; `segment_in_use` while a view or a webhook names it */
  async delete(workspace: string, name: string): Promise<void> {
    await this.#changing(workspace, async () => {
      await this.#found(workspace, name);
      await this.#requireUnused(workspace, name, ['view', 'webhook']);
      const documents = await this.#read(workspace);
      await orStoreAway(this.#documents.delete(documents.filter(({ content }) => content.name === name)));
    });
  }

  /** Reads begin anew with what is stored before and after a change. */
  async #changing<Result>(workspace: string, work: () => Promise<Result>): Promise<Result> {
    return await this.#changes.run(workspace, async () => {
      try {
        return await work();
      } finally {
        this.#reads.delete(workspace);
      }
    });
  }

  async #found(workspace: string, name: string): Promise<StoredDocument<NamedSegment>> {
    this.#reads.delete(workspace);
    return await this.find(workspace, name);
  }

  async #requireUnused(workspace: string, name: string, kinds: readonly SegmentUse['kind'][]): Promise<void> {
    const uses = (await orStoreAway(this.#uses(workspace, name))).filter(({ kind }) => kinds.includes(kind));
    if (uses.length === 0) return;
    const errors = uses.map(({ kind, id, name: view }) => ({
      ...{ path: `${kind}s.${id}`, code: 'in_use' },
      message: kind === 'view' ? `names it: ${JSON.stringify(view)}` : 'names it',
    }));
    throw new Problem('segment_in_use', IN_USE[kinds.length === 1 ? 'put' : 'delete'], { errors });
  }

  async #uses(workspace: string, name: string): Promise<readonly SegmentUse[]> {
    const result = await this.#client.query({
      query: USES,
      query_params: { workspace, name, parameter: SEGMENT_PARAMETER },
      format: 'JSONEachRow',
    });
    return await result.json<SegmentUse>();
  }
}

const IN_USE = {
  put: 'A webhook names the segment: it can follow what is known of users and organizations, but no behaviour.',
  delete: 'Saved views or webhooks name the segment; change them first.',
} as const;

import { randomUUID } from 'node:crypto';
import { Problem } from '@sluice/shared/http/problem';
import { SerialQueue } from '../../store/store.ts';
import {
  type ConsoleDocuments,
  type DocumentPage,
  orStoreAway,
  type PageRequest,
  type StoredDocument,
  type ViewHead,
} from './console-documents.ts';

/** What a response shows of every document. */
export interface DocumentRecord {
  readonly id: string;
  readonly createdAt: string;
  readonly changedAt: string;
}

export function recordOf<Content extends object>({
  id,
  content,
  createdAtMs,
  changedAtMs,
}: StoredDocument<Content>): DocumentRecord & Content {
  const [createdAt, changedAt] = [new Date(createdAtMs).toISOString(), new Date(changedAtMs).toISOString()];
  return { id, ...content, createdAt, changedAt };
}

/** How documents of a kind are called in errors, and how many a workspace may have. */
export interface DocumentLimit {
  /** `views` */
  readonly plural: string;
  /** `view` */
  readonly singular: string;
  readonly max: number;
}

/** What clients do with the documents of their workspace. Its methods throw Problems, `not_found` among them. */
export class DocumentOperations<Content extends object> {
  readonly #documents: ConsoleDocuments<Content>;
  readonly #limit: DocumentLimit;
  /** Creates those of a workspace one after the other, so that each sees how many there are. */
  readonly #creations = new SerialQueue();

  constructor(documents: ConsoleDocuments<Content>, limit: DocumentLimit) {
    this.#documents = documents;
    this.#limit = limit;
  }

  page(workspace: string, request: PageRequest): Promise<DocumentPage<Content>> {
    return orStoreAway(this.#documents.page(workspace, request));
  }

  heads(workspace: string, ids: readonly string[]): Promise<readonly ViewHead[]> {
    return orStoreAway(this.#documents.heads(workspace, ids));
  }

  async find(workspace: string, id: string): Promise<StoredDocument<Content>> {
    return this.#found(await orStoreAway(this.#documents.find(workspace, id)));
  }

  /** @param dashboard whose links count for the limit. Default: all documents of the workspace do */
  async create(workspace: string, content: Content, dashboard?: string): Promise<StoredDocument<Content>> {
    return await this.#creations.run(workspace, async () => {
      const { plural, max } = this.#limit;
      if ((await orStoreAway(this.#documents.count(workspace, dashboard))) >= max) {
        throw new Problem('invalid_request', `There are ${max} ${plural} already; delete one.`, {
          errors: [{ path: plural, code: 'too_many', message: `must be ${max} at most` }],
        });
      }
      const id = randomUUID();
      await orStoreAway(this.#documents.save(workspace, id, content, Date.now()));
      return await this.find(workspace, id);
    });
  }

  /** @param change as that of {@link ConsoleDocuments.change} */
  async change(workspace: string, id: string, change: (content: Content) => Promise<Content>) {
    return this.#found(await orStoreAway(this.#documents.change(workspace, id, change)));
  }

  async delete(documents: readonly StoredDocument<Content>[]): Promise<void> {
    await orStoreAway(this.#documents.delete(documents));
  }

  #found(document: StoredDocument<Content> | undefined): StoredDocument<Content> {
    if (!document) throw new Problem('not_found', `The workspace has no such ${this.#limit.singular}.`);
    return document;
  }
}

/** Returns a document with the changes that are given. */
export function changed<Content extends object>(
  content: Content,
  change: { readonly [Name in keyof Content]?: Content[Name] | undefined },
): Content {
  return { ...content, ...Object.fromEntries(Object.entries(change).filter(([, member]) => member !== undefined)) };
}

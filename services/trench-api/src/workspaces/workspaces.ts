import { randomUUID } from 'node:crypto';
import { Problem, RETRY_UNAVAILABLE_SECONDS } from '@sluice/shared/http/problem';
import {
  createKey,
  KeysFileChanges,
  KeysFileError,
  readKeysFileContent,
  type WorkspaceEntry,
} from '@sluice/shared/keys/keys-file';
import type { ChangedWorkspace, CreatedWorkspace, NewWorkspace, ShownWorkspace } from './workspace-body.ts';

/** The workspaces of a keys file, each with its keys. */
export class Workspaces {
  readonly #path: string;
  readonly #changes: KeysFileChanges;
  readonly #now: () => number;

  /** @param path of the keys file that ingest-api and query-api follow */
  constructor(path: string, now: () => number) {
    this.#path = path;
    this.#changes = new KeysFileChanges(path);
    this.#now = now;
  }

  /**
   * Creates a workspace, a public key (scope `ingest`) and a private one (scopes `query`, `sql` and `webhooks`).
   *
   * @throws {Problem} `invalid_request` when another one has its name or its databaseName
   */
  async create({ name, databaseName, isDefault, properties }: NewWorkspace): Promise<CreatedWorkspace> {
    const id = randomUUID();
    const createdAt = new Date(this.#now()).toISOString();
    const workspace = databaseName ?? id;
    const entry = { id, name, workspace, isDefault, createdAt, ...(properties && { properties }) };
    const publicKey = createKey({ workspace, scopes: ['ingest'], createdAt });
    const privateKey = createKey({ workspace, scopes: ['query', 'sql', 'webhooks'], createdAt });
    await this.#use(() =>
      this.#changes.make(({ keys, workspaces }) => {
        refuseTaken(workspaces, 'name', name, (other) => other.name === name);
        refuseTaken(workspaces, 'databaseName', workspace, (other) => other.workspace === workspace);
        return { keys: [...keys, publicKey.entry, privateKey.entry], workspaces: [...workspaces, entry] };
      }),
    );
    return { ...shownOf(entry), privateApiKey: privateKey.key, publicApiKey: publicKey.key };
  }

  /** @throws {Problem} `not_found` */
  async find(id: string): Promise<ShownWorkspace> {
    const { workspaces } = await this.#use(() => readKeysFileContent(this.#path));
    return shownOf(entryOf(workspaces, id));
  }

  /** Changes the name, and the properties where they are given. @throws {Problem} `not_found`, or as {@link create} */
  async change(id: string, { name, properties }: ChangedWorkspace): Promise<ShownWorkspace> {
    let changed: WorkspaceEntry | undefined;
    await this.#use(() =>
      this.#changes.make(({ keys, workspaces }) => {
        const entry = { ...entryOf(workspaces, id), name, ...(properties && { properties }) };
        refuseTaken(workspaces, 'name', name, (other) => other.name === name && other.id !== id);
        changed = entry;
        return { keys, workspaces: workspaces.map((other) => (other.id === id ? entry : other)) };
      }),
    );
    return shownOf(changed as unknown as WorkspaceEntry);
  }

  /** Removes a workspace with all of its keys. Its events stay. @throws {Problem} `not_found` */
  async remove(id: string): Promise<void> {
    await this.#use(() =>
      this.#changes.make(({ keys, workspaces }) => {
        const { workspace } = entryOf(workspaces, id);
        return {
          keys: keys.filter((key) => key.workspace !== workspace),
          workspaces: workspaces.filter((other) => other.id !== id),
        };
      }),
    );
  }

  async #use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (cause) {
      if (!(cause instanceof KeysFileError)) throw cause;
      throw new Problem('keys_unavailable', 'The keys file cannot be used now; send the request again.', {
        ...{ cause: new Error(`the keys file ${cause.message}`, { cause }), retryAfter: RETRY_UNAVAILABLE_SECONDS },
      });
    }
  }
}

function shownOf({ id, name, workspace, isDefault, createdAt, properties }: WorkspaceEntry): ShownWorkspace {
  return { workspaceId: id, name, databaseName: workspace, isDefault, createdAt, ...(properties && { properties }) };
}

function entryOf(workspaces: readonly WorkspaceEntry[], id: string): WorkspaceEntry {
  const entry = workspaces.find((workspace) => workspace.id === id);
  if (!entry) throw new Problem('not_found', 'Workspace not found.');
  return entry;
}

function refuseTaken(
  workspaces: readonly WorkspaceEntry[],
  path: string,
  value: string,
  isTaken: (other: WorkspaceEntry) => boolean,
): void {
  if (!workspaces.some(isTaken)) return;
  throw new Problem('invalid_request', `Another workspace has the ${path} '${value}'.`, {
    errors: [{ path, code: 'taken', message: 'is that of another workspace' }],
  });
}
